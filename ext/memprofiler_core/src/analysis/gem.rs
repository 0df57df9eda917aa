//! Which gem a file belongs to.

/// The gem that a file belongs to, judged by its path: `app` for the program's own files, `ruby` for the VM and the
/// standard library.
///
/// - `…/gems/NAME-VERSION/…`: RubyGems, Bundler's git checkouts (`bundler/gems/NAME-REVISION/`), and Debian's
///   `/usr/share/rubygems-integration/*/gems/`
/// - `…/vendor_ruby/NAME/…` and `…/vendor_ruby/NAME.rb`: other Debian gems. Directories named after a Ruby version do
///   not count: `vendor_ruby/3.1.0/`
/// - `…/lib/ruby_memprofiler_pprof…`: this gem, which a `path:` in a Gemfile may place anywhere
/// - `…/lib/ruby/3.1.0/…`, `…/lib/ruby/site_ruby/…`, the same in `lib64/` or in Debian's `lib/x86_64-linux-gnu/`,
///   Debian's `…/lib/site_ruby/…`, Fedora's directories without a version, and `<internal:…>`: `ruby`
pub fn of(path: &str) -> &str {
    // From Ruby 3.3 on, the path of evaluated code names the place of the eval.
    let path = path.strip_prefix("(eval at ").unwrap_or(path);
    if path.is_empty() {
        return "(unknown)";
    }
    if path.starts_with("<internal:") || path == "<cfunc>" {
        return "ruby";
    }
    in_gems(path).or_else(|| vendored(path)).or_else(|| standard_library(path)).or_else(|| own(path)).unwrap_or("app")
}

fn in_gems(path: &str) -> Option<&str> {
    const DIRECTORY: &str = "/gems/";
    // A gem's own tests may contain such directories, too, so the outermost one decides. `gems/3.1.0/gems/` does not
    // count.
    path.match_indices(DIRECTORY).find_map(|(at, _)| {
        let (directory, _) = path[at + DIRECTORY.len()..].split_once('/')?;
        let git = path[..at].ends_with("/bundler");
        let (name, _) = directory.match_indices('-').map(|(dash, _)| directory.split_at(dash)).find(|(_, rest)| {
            rest[1..].starts_with(|first: char| first.is_ascii_digit()) || git && is_revision(&rest[1..])
        })?;
        (!name.is_empty()).then_some(name)
    })
}

fn is_revision(text: &str) -> bool {
    text.len() >= 7 && text.chars().all(|digit| digit.is_ascii_hexdigit())
}

fn vendored(path: &str) -> Option<&str> {
    let (_, rest) = path.split_once("/vendor_ruby/")?;
    let name = rest.split('/').next()?;
    if is_version(name) { Some("ruby") } else { Some(name.strip_suffix(".rb").unwrap_or(name)) }
}

fn standard_library(path: &str) -> Option<&str> {
    const FEDORA: [&str; 3] = ["/usr/share/ruby/", "/usr/share/rubygems/", "/usr/lib64/ruby/"];
    let below_lib = ["/lib/", "/lib64/"].iter().any(|lib| path.split(lib).skip(1).any(is_library));
    (below_lib || FEDORA.iter().any(|directory| path.starts_with(directory))).then_some("ruby")
}

/// Whether that is where a Ruby has its libraries, below `lib/`.
fn is_library(path: &str) -> bool {
    let mut directories = path.split('/').skip_while(|directory| directory.contains("-linux-"));
    match directories.next() {
        Some("ruby") => directories.next().is_some_and(|name| is_version(name) || name == "site_ruby"),
        first => first == Some("site_ruby"),
    }
}

fn own(path: &str) -> Option<&str> {
    let (_, rest) = path.split_once("/lib/ruby_memprofiler_pprof")?;
    (rest == ".rb" || rest.starts_with('/')).then_some("ruby_memprofiler_pprof")
}

fn is_version(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
        && text.chars().all(|each| each.is_ascii_digit() || matches!(each, '.' | '+'))
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn a_file_belongs_to_the_gem_of_its_directory() {
        for (path, gem) in [
            ("/usr/lib/ruby/gems/3.1.0/gems/rack-2.2.4/lib/rack.rb", "rack"),
            ("/usr/share/rubygems-integration/all/gems/active-support-6.1.7/lib/x.rb", "active-support"),
            ("/bundle/ruby/3.4.0/gems/nokogiri-1.15.4-x86_64-linux/lib/nokogiri.rb", "nokogiri"),
            ("/bundle/ruby/3.4.0/bundler/gems/my-gem-deadbeef1234/lib/my.rb", "my-gem"),
            ("/usr/lib/ruby/gems/3.1.0/gems/rails-7.0.1/test/gems/foo-1.0/foo.rb", "rails"),
            ("/usr/lib/ruby/vendor_ruby/active_record/base.rb", "active_record"),
            ("/usr/lib/ruby/vendor_ruby/rack.rb", "rack"),
            ("/usr/lib/ruby/3.1.0/json/common.rb", "ruby"),
            ("/usr/lib/ruby/vendor_ruby/3.1.0/x.rb", "ruby"),
            ("/usr/lib/x86_64-linux-gnu/ruby/3.1.0/rbconfig.rb", "ruby"),
            ("/usr/local/lib/site_ruby/3.1.0/x.rb", "ruby"),
            ("/usr/share/ruby/json/common.rb", "ruby"),
            ("/usr/share/rubygems/rubygems.rb", "ruby"),
            ("/usr/lib64/ruby/rbconfig.rb", "ruby"),
            ("/opt/ruby/lib64/ruby/3.4.0/set.rb", "ruby"),
            ("/opt/ruby/lib/ruby/4.1.0+0/set.rb", "ruby"),
            ("/usr/share/ruby/vendor_ruby/rack.rb", "rack"),
            ("/usr/lib64/ruby/gems/3.1.0/gems/rack-2.2.4/lib/rack.rb", "rack"),
            ("/srv/ruby/3.1.0/app.rb", "app"),
            ("/srv/share/ruby/app.rb", "app"),
            ("/srv/app/lib/ruby/app.rb", "app"),
            ("<internal:kernel>", "ruby"),
            ("/src/profiler/lib/ruby_memprofiler_pprof/rack/gate.rb", "ruby_memprofiler_pprof"),
            ("/src/profiler/lib/ruby_memprofiler_pprof.rb", "ruby_memprofiler_pprof"),
            ("/bundle/ruby/3.4.0/bundler/gems/fork-deadbeef1234/lib/ruby_memprofiler_pprof.rb", "fork"),
            ("/app/lib/ruby_memprofiler_pprof_helper.rb", "app"),
            ("/app/gems/lib/thing.rb", "app"),
            ("/app/models/user.rb", "app"),
            ("(eval at /x/gems/erb-4.0.2/lib/erb.rb:429)", "erb"),
            ("-e", "app"),
            ("", "(unknown)"),
        ] {
            assert_eq!(of(path), gem, "{path}");
        }
    }
}
