// Puts cases to Koordinator's own DeviceShare: what a pod is refused for, whether a node is filtered out, its score, and
// the devices that Reserve gives. Built into upstream's package by harness.py; reads and writes JSON, one case a line.

package deviceshare

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	apiext "github.com/koordinator-sh/koordinator/apis/extension"
	schedulingv1alpha1 "github.com/koordinator-sh/koordinator/apis/scheduling/v1alpha1"
	schedulerconfig "github.com/koordinator-sh/koordinator/pkg/scheduler/apis/config"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/frameworkext/schedulingphase"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

type mewsCase struct {
	Device      schedulingv1alpha1.Device  `json:"device"`
	NodeLabels  map[string]string          `json:"nodeLabels"`
	Used        []apiext.DeviceAllocations `json:"used"`
	Requests    corev1.ResourceList        `json:"requests"`
	Annotations map[string]string          `json:"annotations"`
	Strategy    string                     `json:"strategy"`
	Weights     map[string]int64           `json:"weights"`
	Scores      []int64                    `json:"scores"`
}

type mewsAnswer struct {
	Invalid    string                   `json:"invalid,omitempty"`
	Filtered   string                   `json:"filtered,omitempty"`
	Hopeless   bool                     `json:"hopeless,omitempty"`
	Score      int64                    `json:"score"`
	Unreserved string                   `json:"unreserved,omitempty"`
	Given      apiext.DeviceAllocations `json:"given,omitempty"`
	Normalized []int64                  `json:"normalized,omitempty"`
}

func mewsScorer(one *mewsCase) *resourceAllocationScorer {
	args := &schedulerconfig.DeviceShareArgs{ScoringStrategy: &schedulerconfig.ScoringStrategy{}}
	for name, weight := range one.Weights {
		args.ScoringStrategy.Resources = append(
			args.ScoringStrategy.Resources, schedconfig.ResourceSpec{Name: name, Weight: weight})
	}
	return deviceResourceStrategyTypeMap[schedulerconfig.ScoringStrategyType(one.Strategy)](args)
}

func mewsAnswerTo(one *mewsCase) (answer mewsAnswer) {
	if len(one.Scores) > 0 {
		var list framework.NodeScoreList
		for _, score := range one.Scores {
			list = append(list, framework.NodeScore{Score: score})
		}
		(&Plugin{}).NormalizeScore(nil, nil, nil, list)
		for _, each := range list {
			answer.Normalized = append(answer.Normalized, each.Score)
		}
		return answer
	}
	cache := newNodeDeviceCache()
	cache.updateNodeDevice("n", &one.Device)
	devices := cache.getNodeDevice("n", false)
	for number, allocations := range one.Used {
		holder := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: string(rune('a' + number))}}
		devices.updateCacheUsed(allocations, holder, true)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: one.NodeLabels}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "pod", Annotations: one.Annotations},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "c", Resources: corev1.ResourceRequirements{Requests: one.Requests, Limits: one.Requests}},
		}},
	}
	state, status := preparePod(pod)
	if !status.IsSuccess() {
		answer.Invalid = status.Message()
		return answer
	}
	allocator := func(phase string, scorer *resourceAllocationScorer) *AutopilotAllocator {
		return &AutopilotAllocator{
			state: state, phaseBeingExecuted: phase, nodeDevice: devices, node: node, pod: pod, scorer: scorer}
	}
	preemptible := appendAllocated(nil)
	if _, status = allocator("", nil).Allocate(nil, nil, nil, preemptible); !status.IsSuccess() {
		answer.Filtered, answer.Hopeless = status.Message(), status.Code() == framework.UnschedulableAndUnresolvable
		return answer
	}
	scorer := mewsScorer(one)
	if answer.Score, status = allocator("", scorer).score(nil, preemptible); !status.IsSuccess() {
		answer.Unreserved = status.Message()
		return answer
	}
	given, status := allocator(schedulingphase.Reserve, scorer).Allocate(nil, nil, nil, preemptible)
	if !status.IsSuccess() {
		answer.Unreserved = status.Message()
		return answer
	}
	if err := fillGPUTotalMem(given, devices); err != nil {
		answer.Unreserved = err.Error()
		return answer
	}
	answer.Given = given
	return answer
}

func TestMewsAnswers(t *testing.T) {
	cases, err := os.Open(os.Getenv("MEWS_CASES"))
	if err != nil {
		t.Fatal(err)
	}
	defer cases.Close()
	out, err := os.Create(os.Getenv("MEWS_ANSWERS"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	lines := bufio.NewScanner(cases)
	lines.Buffer(nil, 16<<20)
	encoder := json.NewEncoder(out)
	for lines.Scan() {
		var one mewsCase
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		if err := encoder.Encode(mewsAnswerTo(&one)); err != nil {
			t.Fatal(err)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}
