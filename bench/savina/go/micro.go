// Savina's micro programs: what messages and goroutines cost.

package main

func pingPong() {
	const n = 40000
	ping, pong := make(chan int), make(chan int)
	served := int64(0)
	var g group
	g.start(func() {
		for x := range ping {
			served++
			pong <- x
		}
	})
	for i := 0; i < n; i++ {
		ping <- i
		<-pong
	}
	close(ping)
	g.Wait()
	same("pings", served, n)
}

func counting() {
	const n = 1000000
	add, total := make(chan int, mail), make(chan int64)
	go func() {
		count := int64(0)
		for range add {
			count++
		}
		total <- count
	}()
	for i := 0; i < n; i++ {
		add <- i
	}
	close(add)
	same("count", <-total, n)
}

func forkJoinThroughput() {
	const joined, rounds = 60, 10000
	var ports [joined]chan int
	var handled [joined]int64
	var g group
	for i := range ports {
		i := i
		ports[i] = make(chan int, mail)
		g.start(func() {
			for ; handled[i] < rounds; handled[i]++ {
				work(1)
				same("message in order", int64(<-ports[i]), handled[i])
			}
		})
	}
	for k := 0; k < rounds; k++ {
		for _, port := range ports {
			port <- k
		}
	}
	g.Wait()
	for _, h := range handled {
		same("messages handled", h, rounds)
	}
}

func forkJoinCreate() {
	const n = 40000
	home := make(chan int64, mail)
	sum, should := int64(0), int64(0)
	for i := int64(1); i <= n; i++ {
		port := make(chan int64, 1)
		go func() {
			x := <-port
			home <- x * x
		}()
		port <- i
		should += i * i
	}
	for i := 0; i < n; i++ {
		sum += <-home
	}
	same("sum of squares", sum, should)
}

func threadRing() {
	const ring, hops = 100, 100000
	var ports [ring]chan int
	home := make(chan int64)
	for i := range ports {
		ports[i] = make(chan int, 1)
	}
	var g group
	for i := range ports {
		i, from, to := i, ports[i], ports[(i+1)%ring]
		g.start(func() {
			for left := range from {
				if left == 1 {
					home <- int64(i)
				} else {
					to <- left - 1
				}
			}
		})
	}
	ports[0] <- hops
	same("where the token stopped", <-home, (hops-1)%ring)
	for _, port := range ports {
		close(port)
	}
	g.Wait()
}

type encounter struct {
	colour int64
	answer chan encounter // nil: none is expected
}

func chameneos() {
	const creatures, colours, faded, meetings = 100, 3, 3, 200000
	mall, home := make(chan encounter, creatures), make(chan int64)
	go func() {
		var first encounter
		for left, there := meetings, creatures; there > 0; {
			m := <-mall
			if left == 0 {
				m.answer <- encounter{faded, nil}
				there--
			} else if first.answer == nil {
				first = m
			} else {
				first.answer <- m
				first.answer = nil
				left--
			}
		}
	}()
	for i := 0; i < creatures; i++ {
		go func(colour int64) {
			met, mine := int64(0), make(chan encounter, 1)
			for ; ; met++ {
				mall <- encounter{colour, mine}
				other := <-mine
				if other.colour == faded {
					break
				}
				if other.answer != nil {
					other.answer <- encounter{colour, nil}
				}
				if colour != other.colour {
					colour = colours - colour - other.colour
				}
			}
			home <- met
		}(int64(i) % colours)
	}
	met := int64(0)
	for i := 0; i < creatures; i++ {
		met += <-home
	}
	same("meetings", met, 2*meetings)
}

func big() {
	const processes, pings, pong = 120, 20000, 120
	var all [processes]chan int
	var answered [processes]int64
	sink := make(chan bool)
	for i := range all {
		all[i] = make(chan int, processes+1) // a ping of each of the others and a pong: no send waits
	}
	var g group
	for i := range all {
		me := i
		g.start(func() {
			x := randoms(me + 1)
			next := func() (isPong, on bool) {
				from, on := <-all[me]
				if on && from != pong {
					all[from] <- pong
					answered[me]++
				}
				return from == pong, on
			}
			for k := 0; k < pings; k++ {
				other := int(x.below(processes - 1))
				if other >= me {
					other++
				}
				all[other] <- me
				for isPong := false; !isPong; {
					isPong, _ = next()
				}
			}
			sink <- true
			for on := true; on; {
				_, on = next()
			}
		})
	}
	for range all {
		<-sink
	}
	for _, port := range all {
		close(port)
	}
	g.Wait()
	sum := int64(0)
	for _, n := range answered {
		sum += n
	}
	same("pings answered", sum, processes*pings)
}
