module heddle/bench

go 1.18
