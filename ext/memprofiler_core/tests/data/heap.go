// Writes a heap profile, see README.md.
package main

import (
	"os"
	"runtime"
	"runtime/pprof"
)

var kept [][]byte

//go:noinline
func cache(n int) { kept = append(kept, make([]byte, n)) }

func inlined(n int) { cache(n) }

func fill(depth int) {
	if depth > 0 {
		fill(depth - 1)
		return
	}
	for i := 0; i < 2000; i++ {
		inlined(4096)
		_ = append([]byte(nil), make([]byte, 1<<16)...)
	}
}

func main() {
	fill(5)
	runtime.GC()
	if err := pprof.Lookup("heap").WriteTo(os.Stdout, 0); err != nil {
		panic(err)
	}
}
