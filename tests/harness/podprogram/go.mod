module podprogram

go 1.21
