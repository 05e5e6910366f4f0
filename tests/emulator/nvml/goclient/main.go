// Lists the GPUs through NVIDIA's own Go bindings and waits for an XID, as a device plugin does.
package main

import (
	"fmt"
	"os"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

func must(what string, ret nvml.Return) {
	if ret != nvml.SUCCESS {
		fmt.Printf("%s: %s\n", what, nvml.ErrorString(ret))
		os.Exit(1)
	}
}

func list() []nvml.Device {
	count, ret := nvml.DeviceGetCount()
	must("count", ret)
	devices := []nvml.Device{}
	for i := 0; i < count; i++ {
		device, ret := nvml.DeviceGetHandleByIndex(i)
		must("handle", ret)
		uuid, ret := device.GetUUID()
		must("uuid", ret)
		name, ret := device.GetName()
		must("name", ret)
		memory, ret := device.GetMemoryInfo()
		must("memory", ret)
		major, minor, ret := device.GetCudaComputeCapability()
		must("compute capability", ret)
		pci, ret := device.GetPciInfo()
		must("pci", ret)
		number, ret := device.GetMinorNumber()
		must("minor", ret)
		_, _, ret = device.GetMigMode()
		fmt.Printf("%s %s %d %d.%d %x:%x %d mig=%s\n", uuid, name, memory.Total>>20, major, minor, pci.Domain, pci.Bus, number, nvml.ErrorString(ret))
		devices = append(devices, device)
	}
	return devices
}

func main() {
	must("init", nvml.Init())
	defer nvml.Shutdown()
	devices := list()
	if len(devices) == 0 {
		return
	}
	_, ret := devices[0].GetMigDeviceHandleByIndex(0)
	fmt.Println("mig device:", nvml.ErrorString(ret))
	set, ret := nvml.EventSetCreate()
	must("event set", ret)
	must("register", devices[0].RegisterEvents(nvml.EventTypeXidCriticalError|nvml.EventTypeDoubleBitEccError, set))
	fmt.Println("waiting")
	event, ret := set.Wait(20000)
	must("wait", ret)
	uuid, ret := event.Device.GetUUID()
	must("uuid of the event", ret)
	fmt.Printf("xid %d on %s\n", event.EventData, uuid)
	must("free", set.Free())
}
