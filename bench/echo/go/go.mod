module heddle/bench/echo

go 1.18
