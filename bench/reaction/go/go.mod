module heddle/reaction

go 1.18
