module heddle/savina

go 1.18
