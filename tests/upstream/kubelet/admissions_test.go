// Which devices upstream's device manager gives to each container of a pod, for pods of many shapes: written as CSV to
// $MEWS_ADMISSIONS.
//
// Laid into a copy of package devicemanager of k8s.io/kubernetes, whose fields it needs.

package devicemanager

import (
	"encoding/csv"
	"fmt"
	"os"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/checkpointmanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
)

func (p *choosy) allocate(devs []string) (*pluginapi.AllocateResponse, error) {
	return &pluginapi.AllocateResponse{ContainerResponses: []*pluginapi.ContainerAllocateResponse{{}}}, nil
}

// Containers: "i" a plain init container, "s" a sidecar, "m" a main one, each with how many devices it asks for.
func shaped(shape string) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", UID: "uid"}}
	always := v1.ContainerRestartPolicyAlways
	for at := 0; at < len(shape); at += 2 {
		container := v1.Container{Name: fmt.Sprintf("c%d", at/2)}
		if wanted := int64(shape[at+1] - '0'); wanted > 0 {
			container.Resources.Limits = v1.ResourceList{inFlight: *resource.NewQuantity(wanted, resource.DecimalSI)}
		}
		switch shape[at] {
		case 's':
			container.RestartPolicy = &always
			fallthrough
		case 'i':
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, container)
		default:
			pod.Spec.Containers = append(pod.Spec.Containers, container)
		}
	}
	return pod
}

func given(t *testing.T, shape string, devices int) string {
	kept, err := checkpointmanager.NewCheckpointManager(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pod := shaped(shape)
	healthy := each("abcdef"[:devices])
	manager := &ManagerImpl{
		endpoints:             map[string]endpointInfo{inFlight: {e: &choosy{}, opts: &pluginapi.DevicePluginOptions{GetPreferredAllocationAvailable: true}}},
		allDevices:            NewResourceDeviceInstances(),
		healthyDevices:        map[string]sets.Set[string]{inFlight: healthy},
		unhealthyDevices:      map[string]sets.Set[string]{},
		allocatedDevices:      map[string]sets.Set[string]{},
		devicesToReuse:        PodReusableDevices{},
		podDevices:            newPodDevices(),
		checkpointManager:     kept,
		activePods:            func() []*v1.Pod { return []*v1.Pod{pod} },
		sourcesReady:          ready{},
		topologyAffinityStore: topologymanager.NewFakeManager(),
	}
	manager.allDevices[inFlight] = DeviceInstances{}
	for device := range healthy {
		manager.allDevices[inFlight][device] = &pluginapi.Device{ID: device}
	}
	var found []string
	for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		if err := manager.Allocate(pod, &container); err != nil {
			return err.Error()
		}
		held := manager.podDevices.containerDevices("uid", container.Name, inFlight)
		found = append(found, strings.Join(sets.List(held), ""))
	}
	return strings.Join(found, " ")
}

func TestWriteAdmissions(t *testing.T) {
	path := os.Getenv("MEWS_ADMISSIONS")
	if path == "" {
		t.Skip("MEWS_ADMISSIONS names no file")
	}
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	table := csv.NewWriter(out)
	defer table.Flush()
	table.Write([]string{"containers", "devices", "given"})
	inits := []string{"", "i0", "i1", "i2", "i3", "s1", "s2", "i1i1", "i1i2", "i2i1", "i1s1", "s1i1", "i2s1", "s1s1", "s1i2", "i2s2", "i1s1i2", "i1i2i3", "s1i1s1"}
	mains := []string{"m0", "m1", "m2", "m3", "m1m1", "m2m1", "m0m1", "m1m2", "m1m1m1"}
	for _, before := range inits {
		for _, main := range mains {
			for _, devices := range []int{1, 2, 3, 6} {
				outcome := given(t, before+main, devices)
				for again := 0; again < 12; again++ { // what is left to chance is left out
					if given(t, before+main, devices) != outcome {
						outcome = ""
						break
					}
				}
				if outcome != "" {
					table.Write([]string{before + main, fmt.Sprint(devices), outcome})
				}
			}
		}
	}
}
