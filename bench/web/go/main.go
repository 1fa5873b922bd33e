// The HTTP server in Go: net/http. What it does is said in http.h. BENCH_WORKERS becomes GOMAXPROCS.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"time"
)

const patience = 30 * time.Second

var page = []byte("Hello from a process of its own.\n")

func fail(what string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
	os.Exit(1)
}

func answer(out http.ResponseWriter, request *http.Request) {
	if request.URL.Path != "/" {
		http.NotFound(out, request)
		return
	}
	out.Header().Set("Content-Type", "text/plain")
	out.Write(page)
}

func main() {
	workers, err := strconv.Atoi(os.Getenv("BENCH_WORKERS"))
	if err != nil || workers < 1 {
		workers = 1
	}
	runtime.GOMAXPROCS(workers)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fail("listen", err)
	}
	fmt.Printf("port %d\n", listener.Addr().(*net.TCPAddr).Port)
	server := http.Server{Handler: http.HandlerFunc(answer), ReadTimeout: patience, WriteTimeout: patience}
	fail("serve", server.Serve(listener))
}
