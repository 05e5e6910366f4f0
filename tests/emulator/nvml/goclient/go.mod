module mews.test/goclient

go 1.20

require github.com/NVIDIA/go-nvml v0.12.4-1
