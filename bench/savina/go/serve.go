// Savina's programs in which many goroutines call one that has the data, and chains of calls.

package main

import "math"

const clients = 20

type request struct {
	kind   int
	key    int64
	value  int64
	answer chan int64
}

const (
	read = iota
	write
	size
)

// serve runs the clients of a server until they have ended, and answers how much the server has then.
func serve(server func(<-chan request), client func(seed int, ask func(kind int, key, value int64) int64)) int64 {
	requests := make(chan request, clients)
	asker := func() func(int, int64, int64) int64 {
		answer := make(chan int64, 1)
		return func(kind int, key, value int64) int64 {
			requests <- request{kind, key, value, answer}
			return <-answer
		}
	}
	var servers, g group
	servers.start(func() { server(requests) })
	for i := 1; i <= clients; i++ {
		seed := i
		g.start(func() { client(seed, asker()) })
	}
	g.Wait()
	has := asker()(size, 0, 0)
	close(requests)
	servers.Wait()
	return has
}

func dictionary() {
	const each, keys, writePercent = 10000, 524287, 10
	has := serve(func(requests <-chan request) {
		table := map[int64]int64{}
		for r := range requests {
			switch r.kind {
			case read:
				r.answer <- table[r.key]
			case write:
				table[r.key] = r.value
				r.answer <- r.value
			case size:
				r.answer <- int64(len(table))
			}
		}
	}, func(seed int, ask func(int, int64, int64) int64) {
		x := randoms(seed)
		for i := 0; i < each; i++ {
			kind := read
			if x.below(100) < writePercent {
				kind = write
			}
			key := 1 + x.below(keys)
			if value := ask(kind, key, 3*key); value != 3*key && (kind == write || value != 0) {
				fail("value")
			}
		}
	})
	seen := map[int64]bool{}
	for seed := 1; seed <= clients; seed++ {
		x := randoms(seed)
		for i := 0; i < each; i++ {
			isWrite := x.below(100) < writePercent
			key := 1 + x.below(keys)
			if isWrite {
				seen[key] = true
			}
		}
	}
	same("keys", has, int64(len(seen)))
}

type node struct {
	number int64
	next   *node
}

// placeOf answers what points to the first node that is not below the number.
func placeOf(list **node, number int64) **node {
	for *list != nil && (*list).number < number {
		list = &(*list).next
	}
	return list
}

func sortedList() {
	const each, numbers, sizePercent, addPercent = 8000, 1024, 1, 10
	next := func(x *randoms) (int, int64) {
		chance, number := x.below(100), x.below(numbers)
		if chance < sizePercent {
			return size, number
		} else if chance < sizePercent+addPercent {
			return write, number
		}
		return read, number
	}
	has := serve(func(requests <-chan request) {
		var list *node
		count := int64(0)
		for r := range requests {
			switch r.kind {
			case read:
				found := int64(0)
				if at := *placeOf(&list, r.key); at != nil && at.number == r.key {
					found = 1
				}
				r.answer <- found
			case write:
				if place := placeOf(&list, r.key); *place == nil || (*place).number != r.key {
					*place = &node{r.key, *place}
					count++
				}
				r.answer <- 1
			case size:
				r.answer <- count
			}
		}
	}, func(seed int, ask func(int, int64, int64) int64) {
		x, had := randoms(seed), int64(0)
		for i := 0; i < each; i++ {
			kind, number := next(&x)
			answer := ask(kind, number, 0)
			if kind == read && answer > 1 || kind == write && answer != 1 || kind == size && (answer < had || answer > numbers) {
				fail("answer")
			}
			if kind == size {
				had = answer
			}
		}
	})
	seen := map[int64]bool{}
	for seed := 1; seed <= clients; seed++ {
		x := randoms(seed)
		for i := 0; i < each; i++ {
			if kind, number := next(&x); kind == write {
				seen[number] = true
			}
		}
	}
	same("numbers", has, int64(len(seen)))
}

func boundedBuffer() {
	const capacity, sides, each, steps = 50, 40, 1000, 250
	requests, taken := make(chan request, 2*sides), make(chan int64, sides)
	var servers, g group
	servers.start(func() {
		var items []int64
		var puts, takes []request
		put := func(r request) {
			if len(takes) > 0 {
				takes[0].answer <- r.value
				takes = takes[1:]
			} else {
				items = append(items, r.value)
			}
			r.answer <- 0
		}
		for r := range requests {
			if r.kind == write && len(items) == capacity {
				puts = append(puts, r)
			} else if r.kind == write {
				put(r)
			} else if len(items) == 0 {
				takes = append(takes, r)
			} else {
				item := items[0]
				items = items[1:]
				if len(puts) > 0 {
					first := puts[0]
					puts = puts[1:]
					put(first)
				}
				r.answer <- item
			}
		}
	})
	for i := 0; i < sides; i++ {
		g.start(func() {
			answer := make(chan int64, 1)
			for item := int64(1); item <= each; item++ {
				work(steps)
				requests <- request{write, 0, item, answer}
				<-answer
			}
		})
		g.start(func() {
			answer, sum := make(chan int64, 1), int64(0)
			for k := 0; k < each; k++ {
				requests <- request{read, 0, 0, answer}
				sum += <-answer
				work(steps)
			}
			taken <- sum
		})
	}
	g.Wait()
	close(requests)
	servers.Wait()
	sum := int64(0)
	for i := 0; i < sides; i++ {
		sum += <-taken
	}
	same("sum of the items", sum, sides*each*(each+1)/2)
}

type termRequest struct {
	term   float64
	answer chan float64
}

func nextTerm(term, rate float64) float64 {
	return rate * term * (1 - term)
}

func logisticMap() {
	const count, terms, firstRate, increment = 10, 25000, 3.46, 0.0025
	var series [count]chan termRequest // one with a channel asks for the term, one without for the next
	var computers [count]chan termRequest
	var g group
	for i := range series {
		rate, term := firstRate+float64(i)*increment, float64(i+1)*increment
		asked, in := make(chan termRequest, 1), make(chan termRequest, mail)
		series[i], computers[i] = in, asked
		g.start(func() {
			for r := range asked {
				r.answer <- nextTerm(r.term, rate)
			}
		})
		g.start(func() {
			answer := make(chan float64, 1)
			for r := range in {
				if r.answer != nil {
					r.answer <- term
				} else {
					asked <- termRequest{term, answer}
					term = <-answer
				}
			}
		})
	}
	for k := 0; k < terms; k++ {
		for _, s := range series {
			s <- termRequest{}
		}
	}
	for i := range series {
		rate, term := firstRate+float64(i)*increment, float64(i+1)*increment
		answer := make(chan float64, 1)
		series[i] <- termRequest{0, answer}
		for k := 0; k < terms; k++ {
			term = nextTerm(term, rate)
		}
		if math.Abs(<-answer-term) >= 1e-9 {
			fail("term")
		}
		close(series[i])
		close(computers[i])
	}
	g.Wait()
}

const (
	transfer = iota
	deposit
	balanceOf
)

type order struct {
	kind   int
	to     int64
	amount int64
	answer chan int64
}

func bank() {
	const count, n = 1000, 50000
	var accounts [count]chan order
	var should [count]int64
	teller := make(chan bool, n)
	for i := range accounts {
		accounts[i] = make(chan order, mail)
	}
	var g group
	for i := range accounts {
		in := accounts[i]
		g.start(func() {
			balance, answer := int64(0), make(chan int64, 1)
			for o := range in {
				switch o.kind {
				case transfer:
					balance -= o.amount
					accounts[o.to] <- order{deposit, 0, o.amount, answer}
					<-answer
					teller <- true
				case deposit:
					balance += o.amount
					o.answer <- 0
				case balanceOf:
					o.answer <- balance
				}
			}
		})
	}
	x := randoms(1)
	for i := 0; i < n; i++ {
		from := x.below(count - 1)
		to := from + 1 + x.below(count-1-from)
		amount := 1 + x.below(1000)
		accounts[from] <- order{transfer, to, amount, nil}
		should[from] -= amount
		should[to] += amount
	}
	for i := 0; i < n; i++ {
		<-teller
	}
	answer := make(chan int64, 1)
	for i, in := range accounts {
		in <- order{balanceOf, 0, 0, answer}
		same("balance", <-answer, should[i])
		close(in)
	}
	g.Wait()
}
