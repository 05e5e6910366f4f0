// Which devices upstream's device manager takes, or why it takes none, for every combination of a few: written as CSV to
// $MEWS_CHOICES.
//
// Laid into a copy of package devicemanager of k8s.io/kubernetes, whose fields it needs.

package devicemanager

import (
	"encoding/csv"
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/checkpoint"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
)

// choosy prefers the first or the last of what it may give.
type choosy struct {
	slowPlugin
	last bool
}

func (p *choosy) getPreferredAllocation(available, mustInclude []string, size int) (*pluginapi.PreferredAllocationResponse, error) {
	rest := sets.List(sets.New(available...).Delete(mustInclude...))
	if p.last {
		sort.Sort(sort.Reverse(sort.StringSlice(rest)))
	}
	chosen := append(sets.List(sets.New(mustInclude...)), rest...)[:size]
	answer := &pluginapi.ContainerPreferredAllocationResponse{DeviceIDs: chosen}
	return &pluginapi.PreferredAllocationResponse{ContainerResponses: []*pluginapi.ContainerPreferredAllocationResponse{answer}}, nil
}

func each(text string) sets.Set[string] {
	found := sets.New[string]()
	for _, letter := range text {
		found.Insert(string(letter))
	}
	return found
}

func chosen(healthy, allocated, held, reusable, prefers string, required int) string {
	plugin := &choosy{last: prefers == "last"}
	manager := &ManagerImpl{
		endpoints:             map[string]endpointInfo{inFlight: {e: plugin, opts: &pluginapi.DevicePluginOptions{GetPreferredAllocationAvailable: prefers != ""}}},
		allDevices:            NewResourceDeviceInstances(),
		healthyDevices:        map[string]sets.Set[string]{},
		unhealthyDevices:      map[string]sets.Set[string]{},
		allocatedDevices:      map[string]sets.Set[string]{inFlight: each(allocated)},
		devicesToReuse:        PodReusableDevices{},
		podDevices:            newPodDevices(),
		activePods:            func() []*v1.Pod { return nil },
		sourcesReady:          ready{},
		topologyAffinityStore: topologymanager.NewFakeManager(),
	}
	if healthy != "?" {
		manager.healthyDevices[inFlight] = each(healthy)
	}
	if held != "" {
		manager.podDevices.insert("uid", "main", inFlight, checkpoint.DevicesPerNUMA{-1: sets.List(each(held))}, nil)
	}
	got, err := manager.devicesToAllocate("uid", "main", inFlight, required, each(reusable))
	if err != nil {
		return err.Error()
	}
	return strings.Join(sets.List(got), "")
}

func within(inner, outer string) bool { return each(outer).IsSuperset(each(inner)) }

func TestWriteChoices(t *testing.T) {
	path := os.Getenv("MEWS_CHOICES")
	if path == "" {
		t.Skip("MEWS_CHOICES names no file")
	}
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	table := csv.NewWriter(out)
	defer table.Flush()
	table.Write([]string{"healthy", "allocated", "held", "reusable", "required", "prefers", "outcome"})
	for _, healthy := range []string{"?", "", "a", "ab", "abc", "abcd"} {
		for _, allocated := range []string{"", "a", "ab", "abc"} {
			for _, held := range []string{"", "a", "ab"} {
				for _, reusable := range []string{"", "b", "bc"} {
					for _, required := range []int{1, 2, 3} {
						for _, prefers := range []string{"", "first", "last"} {
							if !within(held, allocated) || !within(reusable, allocated) || each(held).HasAny(sets.List(each(reusable))...) {
								continue
							}
							outcome := chosen(healthy, allocated, held, reusable, prefers, required)
							for again := 0; again < 40; again++ { // what is left to chance is shown as its number
								if other := chosen(healthy, allocated, held, reusable, prefers, required); other != outcome {
									outcome = fmt.Sprintf("any %d", len(outcome))
									break
								}
							}
							table.Write([]string{healthy, allocated, held, reusable, fmt.Sprint(required), prefers, outcome})
						}
					}
				}
			}
		}
	}
}
