// A device plugin that behaves as NVIDIA's does: NVML is opened at the start and stays open, the GPUs are listed once,
// by UUID, and a GPU that reports a critical XID is Unhealthy for good. Its argument is the kubelet's plugin folder, if that is not the usual one.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	resource = "nvidia.com/gpu"
	endpoint = "nvidia-gpu.sock"
	waitMs   = 5000
)

// XIDs that tell of the program, not of the GPU.
var ignored = map[uint64]bool{13: true, 31: true, 43: true, 45: true, 68: true, 109: true}

// must ends the program where NVML refuses.
func must(what string, ret nvml.Return) {
	if ret != nvml.SUCCESS {
		log.Fatalf("%s: %s", what, nvml.ErrorString(ret))
	}
}

// plugin serves the GPUs that were there when it started; changed is closed, and made anew, when one's health changes.
type plugin struct {
	api.UnimplementedDevicePluginServer
	mutex   sync.Mutex
	uuids   []string
	sick    map[string]bool
	changed chan struct{}
}

// found lists the GPUs and has the event set hear of each.
func found(set nvml.EventSet) []string {
	count, ret := nvml.DeviceGetCount()
	must("count", ret)
	uuids := []string{}
	for i := 0; i < count; i++ {
		device, ret := nvml.DeviceGetHandleByIndex(i)
		must("handle", ret)
		uuid, ret := device.GetUUID()
		must("uuid", ret)
		supported, ret := device.GetSupportedEventTypes()
		must("supported events", ret)
		wanted := uint64(nvml.EventTypeXidCriticalError | nvml.EventTypeDoubleBitEccError | nvml.EventTypeSingleBitEccError)
		must("register events", device.RegisterEvents(wanted&supported, set))
		uuids = append(uuids, uuid)
	}
	return uuids
}

// condemn makes these GPUs Unhealthy; nothing makes them Healthy again.
func (p *plugin) condemn(uuids ...string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, uuid := range uuids {
		p.sick[uuid] = true
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

// watch waits for XIDs for ever; an event that cannot be understood condemns every GPU.
func (p *plugin) watch(set nvml.EventSet) {
	for {
		event, ret := set.Wait(waitMs)
		if ret == nvml.ERROR_TIMEOUT {
			continue
		}
		if ret != nvml.SUCCESS {
			log.Printf("event: %s", nvml.ErrorString(ret))
			p.condemn(p.uuids...)
			continue
		}
		if event.EventType != nvml.EventTypeXidCriticalError {
			continue
		}
		if ignored[event.EventData] {
			log.Printf("xid %d ignored", event.EventData)
			continue
		}
		uuid, ret := event.Device.GetUUID()
		if ret != nvml.SUCCESS {
			log.Printf("xid %d of an unknown device: %s", event.EventData, nvml.ErrorString(ret))
			p.condemn(p.uuids...)
			continue
		}
		log.Printf("xid %d on %s", event.EventData, uuid)
		p.condemn(uuid)
	}
}

// state is the list as the kubelet is to see it now, and what is closed when it changes.
func (p *plugin) state() (*api.ListAndWatchResponse, <-chan struct{}) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	told := &api.ListAndWatchResponse{}
	for _, uuid := range p.uuids {
		health := api.Healthy
		if p.sick[uuid] {
			health = api.Unhealthy
		}
		told.Devices = append(told.Devices, &api.Device{ID: uuid, Health: health})
	}
	return told, p.changed
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	for {
		told, changed := p.state()
		if err := stream.Send(told); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return nil
		}
	}
}

func (p *plugin) Allocate(_ context.Context, asked *api.AllocateRequest) (*api.AllocateResponse, error) {
	given := &api.AllocateResponse{}
	for _, container := range asked.ContainerRequests {
		for _, id := range container.DevicesIds {
			if _, known := p.known()[id]; !known {
				return nil, fmt.Errorf("%s: no such device: %s", resource, id)
			}
		}
		visible := map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(container.DevicesIds, ",")}
		given.ContainerResponses = append(given.ContainerResponses, &api.ContainerAllocateResponse{Envs: visible})
	}
	return given, nil
}

func (p *plugin) known() map[string]struct{} {
	all := map[string]struct{}{}
	for _, uuid := range p.uuids {
		all[uuid] = struct{}{}
	}
	return all
}

// register tells the kubelet which socket serves the resource.
func register(folder string) error {
	connection, err := grpc.NewClient(
		"unix://"+filepath.Join(folder, "kubelet.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
	)
	if err != nil {
		return err
	}
	defer connection.Close()
	request := &api.RegisterRequest{Version: api.Version, Endpoint: endpoint, ResourceName: resource}
	_, err = api.NewRegistrationClient(connection).Register(context.Background(), request)
	return err
}

func main() {
	log.SetFlags(0)
	folder := api.DevicePluginPath
	if len(os.Args) > 1 {
		folder = os.Args[1]
	}
	must("init", nvml.Init())
	set, ret := nvml.EventSetCreate()
	must("event set", ret)
	served := &plugin{uuids: found(set), sick: map[string]bool{}, changed: make(chan struct{})}
	log.Printf("found %d", len(served.uuids))
	path := filepath.Join(folder, endpoint)
	os.Remove(path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, served)
	go served.watch(set)
	go func() {
		if err := register(folder); err != nil {
			log.Fatal(err)
		}
		log.Print("registered")
	}()
	log.Fatal(server.Serve(listener))
}
