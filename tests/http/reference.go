// What program.c serves, by net/http/pprof: the judge of handler.py.
// Its argument is WriteTimeout in seconds.
package main

import (
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"
)

var lock sync.Mutex
var kept []byte

func main() {
	runtime.SetBlockProfileRate(1)
	runtime.SetMutexProfileFraction(1)
	for _, n := range []string{"a'b<c>&\"d", "x:y/z?q", "*", "brackets[1]!(2)", "~$,;=@+%zz"} {
		pprof.NewProfile(n).Add(n, 0)
	}
	for i := 0; i < 2; i++ {
		go func() {
			for {
				lock.Lock()
				kept = make([]byte, 100000)
				time.Sleep(3 * time.Millisecond)
				lock.Unlock()
			}
		}()
	}
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println("OK", socket.Addr())
	server := http.Server{}
	if len(os.Args) > 1 {
		server.WriteTimeout, _ = time.ParseDuration(os.Args[1] + "s")
	}
	go server.Serve(socket)
	os.Stdin.Read(make([]byte, 1))
}
