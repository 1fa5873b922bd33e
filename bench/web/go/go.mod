module http

go 1.18
