module mews.dev/goextender

go 1.24
