// The echo server in Go: a goroutine per connection. The protocol is that of echo.h. BENCH_WORKERS becomes GOMAXPROCS.
package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"syscall"
)

const bufferSize = 256

func fail(what string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
	os.Exit(1)
}

func serve(connection net.Conn) {
	defer connection.Close()
	buffer := make([]byte, bufferSize)
	for {
		n, err := connection.Read(buffer)
		if err != nil {
			return
		}
		if _, err = connection.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func main() {
	workers, err := strconv.Atoi(os.Getenv("BENCH_WORKERS"))
	if err != nil || workers < 1 {
		workers = 1
	}
	runtime.GOMAXPROCS(workers)

	// Go raises the limit of descriptors by itself from 1.19 on.
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		limit.Cur = limit.Max
		syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fail("listen", err)
	}
	fmt.Printf("port %d\n", listener.Addr().(*net.TCPAddr).Port)
	for {
		connection, err := listener.Accept()
		if err != nil {
			fail("accept", err)
		}
		go serve(connection)
	}
}
