// Eight goroutines talk to a server in the same process, 50 times each, 10 ms apart; prints what came back, and the time
// that it took in tenths of seconds.
package main

import (
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

func serve(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			panic(err)
		}
		go io.Copy(connection, connection)
	}
}

func talk(address string, echoed *atomic.Int64) {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		panic(err)
	}
	message := make([]byte, 100)
	for n := 0; n < 50; n++ {
		connection.Write(message)
		count, _ := io.ReadFull(connection, message)
		echoed.Add(int64(count))
		time.Sleep(10 * time.Millisecond)
	}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go serve(listener)
	begin := time.Now()
	var echoed atomic.Int64
	var all sync.WaitGroup
	for n := 0; n < 8; n++ {
		all.Add(1)
		go func() {
			defer all.Done()
			talk(listener.Addr().String(), &echoed)
		}()
	}
	all.Wait()
	tenths := time.Since(begin) / (100 * time.Millisecond)
	os.Stdout.WriteString(strconv.Itoa(int(echoed.Load())) + " bytes, " + strconv.Itoa(int(tenths)) + "\n")
}
