// Writes a heap profile, see README.md.
const pprof = require("@datadog/pprof");
pprof.heap.start(8 * 1024, 64);
const kept = [];
class Session { constructor(id) { this.id = id; this.body = "x".repeat(100) + id; this.list = new Array(50).fill(id); } }
function visit(id) { kept.push(new Session(id)); }
for (let id = 0; id < 20000; id++) visit(id);
const profile = pprof.heap.profile();
process.stdout.write(pprof.encodeSync(profile));
