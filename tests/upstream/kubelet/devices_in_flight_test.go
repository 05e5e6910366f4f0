// Two pods get one device of upstream's device manager: what an Allocate that the plugin has not answered yet reserved
// is freed when the devices of an ended pod are collected, and the answer does not reserve it again.
//
// Laid over package devicemanager of k8s.io/kubernetes (go test -overlay), whose fields it needs.

package devicemanager

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/checkpointmanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/checkpoint"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
)

const inFlight = "example.com/res"

// slowPlugin answers an Allocate once the test lets it.
type slowPlugin struct {
	asked  chan []string
	answer chan struct{}
}

func (p *slowPlugin) getPreferredAllocation(available, mustInclude []string, size int) (*pluginapi.PreferredAllocationResponse, error) {
	return nil, nil
}

func (p *slowPlugin) allocate(devs []string) (*pluginapi.AllocateResponse, error) {
	p.asked <- devs
	<-p.answer
	return &pluginapi.AllocateResponse{ContainerResponses: []*pluginapi.ContainerAllocateResponse{{}}}, nil
}

func (p *slowPlugin) preStartContainer(devs []string) (*pluginapi.PreStartContainerResponse, error) {
	return nil, nil
}
func (p *slowPlugin) setStopTime(t time.Time)      {}
func (p *slowPlugin) isStopped() bool              { return false }
func (p *slowPlugin) stopGracePeriodExpired() bool { return false }

type ready struct{}

func (ready) AddSource(string) {}
func (ready) AllReady() bool   { return true }

func asking(name string) *v1.Pod {
	one := v1.ResourceList{inFlight: *resource.NewQuantity(1, resource.DecimalSI)}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Limits: one}}}},
	}
}

func givenTwice(t *testing.T, collectInFlight bool) bool {
	t.Helper()
	kept, err := checkpointmanager.NewCheckpointManager(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	first, second, ended := asking("first"), asking("second"), asking("ended")
	active := []*v1.Pod{ended}
	plugin := &slowPlugin{asked: make(chan []string, 2), answer: make(chan struct{}, 2)}
	manager := &ManagerImpl{
		endpoints:             map[string]endpointInfo{inFlight: {e: plugin, opts: &pluginapi.DevicePluginOptions{}}},
		allDevices:            NewResourceDeviceInstances(),
		healthyDevices:        map[string]sets.Set[string]{inFlight: sets.New("a", "b")},
		unhealthyDevices:      map[string]sets.Set[string]{},
		allocatedDevices:      map[string]sets.Set[string]{},
		devicesToReuse:        PodReusableDevices{},
		podDevices:            newPodDevices(),
		checkpointManager:     kept,
		activePods:            func() []*v1.Pod { return active },
		sourcesReady:          ready{},
		topologyAffinityStore: topologymanager.NewFakeManager(),
	}
	manager.allDevices[inFlight] = DeviceInstances{"a": &pluginapi.Device{ID: "a"}, "b": &pluginapi.Device{ID: "b"}}
	// A pod that holds a device of another resource, and that ends while the first pod's Allocate is not answered.
	manager.podDevices.insert("ended", "main", "example.com/other", checkpoint.DevicesPerNUMA{-1: {"x"}}, nil)
	manager.allocatedDevices = manager.podDevices.devices()

	done := make(chan error, 1)
	active = append(active, first)
	go func() { done <- manager.Allocate(first, &first.Spec.Containers[0]) }()
	got := <-plugin.asked
	active = []*v1.Pod{first}
	if collectInFlight {
		manager.UpdateAllocatedDevices() // what PodResourcesLister/List calls
	}
	plugin.answer <- struct{}{}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	// One admission after the other, as the kubelet does it. Of two devices a set gives either: take what is left away.
	other := "a"
	if got[0] == "a" {
		other = "b"
	}
	manager.healthyDevices[inFlight].Delete(other)
	active = append(active, second)
	plugin.answer <- struct{}{}
	err = manager.Allocate(second, &second.Spec.Containers[0])
	if err != nil {
		t.Logf("the second pod is refused: %v", err)
		return false
	}
	t.Logf("both live pods hold %v and %v", got, manager.podDevices.containerDevices("second", "main", inFlight).UnsortedList())
	return true
}

func TestWithoutACollectionTheSecondPodIsRefused(t *testing.T) {
	_ = context.Background()
	if givenTwice(t, false) {
		t.Fatal("a device was given twice")
	}
}

func TestACollectionWhileAllocateIsInFlightGivesOneDeviceToTwoPods(t *testing.T) {
	if !givenTwice(t, true) {
		t.Fatal("upstream has mended it")
	}
}
