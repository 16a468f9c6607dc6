// SPDX-License-Identifier: MIT

// The same for Go, which writes its own profile: code FILE
package main

import (
	"os"
	"runtime/pprof"
	"sort"
	"time"
)

type box struct{ v []int }

func mix(x int) int { return (x*7919 + 13) ^ (x >> 3) }

//go:noinline
func (b *box) fill(n int) {
	for i := 0; i < n; i++ {
		b.v = append(b.v, mix(i))
	}
}

func main() {
	file, err := os.Create(os.Args[1])
	if err != nil {
		panic(err)
	}
	pprof.StartCPUProfile(file)
	for begin := time.Now(); time.Since(begin) < time.Second; {
		b := &box{}
		b.fill(20000)
		sort.Slice(b.v, func(i, j int) bool {
			return mix(b.v[i]) < mix(b.v[j])
		})
	}
	pprof.StopCPUProfile()
}
