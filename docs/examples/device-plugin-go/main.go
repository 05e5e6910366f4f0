// A device plugin in Go: announces widgets, and gives a container the names of its own.
//
// usage: device-plugin FOLDER COUNT      (FOLDER: /var/lib/kubelet/device-plugins on a real node)
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

type widgets struct {
	api.UnimplementedDevicePluginServer
	count int
}

func (w widgets) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (w widgets) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	var devices []*api.Device
	for number := range w.count {
		devices = append(devices, &api.Device{ID: fmt.Sprintf("widget-%d", number), Health: api.Healthy})
	}
	if err := stream.Send(&api.ListAndWatchResponse{Devices: devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (w widgets) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, each := range request.ContainerRequests {
		envs := map[string]string{"WIDGETS": strings.Join(each.DevicesIds, ",")}
		answer.ContainerResponses = append(answer.ContainerResponses, &api.ContainerAllocateResponse{Envs: envs})
	}
	return answer, nil
}

func main() {
	folder := os.Args[1]
	count, err := strconv.Atoi(os.Args[2])
	check(err)
	socket, err := net.Listen("unix", filepath.Join(folder, "widget-go.sock"))
	check(err)
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, widgets{count: count})
	go func() { check(server.Serve(socket)) }()
	kubelet, err := grpc.NewClient("unix://"+filepath.Join(folder, "kubelet.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(err)
	request := &api.RegisterRequest{Version: api.Version, Endpoint: "widget-go.sock", ResourceName: "example.com/widget"}
	_, err = api.NewRegistrationClient(kubelet).Register(context.Background(), request, grpc.WaitForReady(true))
	check(err)
	select {}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
