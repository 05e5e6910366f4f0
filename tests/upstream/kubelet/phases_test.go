// The phase that upstream's getPhase gives pods in every combination of a few containers' states: written as CSV to
// $MEWS_PHASES. Laid beside that function, which is copied from its file.

package phase

import (
	"encoding/csv"
	"fmt"
	"os"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// A state: "-" never started, "r" runs, "n" runs and has not passed its startup probe, "0" and "3" ended so.
func status(name string, state byte) v1.ContainerStatus {
	yes, no := true, false
	shown := v1.ContainerStatus{Name: name}
	switch state {
	case '-':
		shown.State.Waiting = &v1.ContainerStateWaiting{Reason: "PodInitializing"}
	case 'r':
		shown.State.Running, shown.Started = &v1.ContainerStateRunning{}, &yes
	case 'n':
		shown.State.Running, shown.Started = &v1.ContainerStateRunning{}, &no
	default:
		shown.State.Terminated = &v1.ContainerStateTerminated{ExitCode: int32(state - '0')}
	}
	return shown
}

// Init containers: "i" and a state for each plain one, "s" and a state for each sidecar.
func phaseOf(policy v1.RestartPolicy, inits, mains string, ended bool) string {
	pod := &v1.Pod{Spec: v1.PodSpec{RestartPolicy: policy}}
	always := v1.ContainerRestartPolicyAlways
	var shown []v1.ContainerStatus
	for at := 0; at < len(inits); at += 2 {
		container := v1.Container{Name: fmt.Sprintf("i%d", at)}
		if inits[at] == 's' {
			container.RestartPolicy = &always
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, container)
		shown = append(shown, status(container.Name, inits[at+1]))
	}
	for at := range mains {
		name := fmt.Sprintf("m%d", at)
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: name})
		shown = append(shown, status(name, mains[at]))
	}
	return string(getPhase(pod, shown, ended, strings.Trim(mains, "-") != ""))
}

// Whether containers come to these states: each init container waits for the one before it, mains for all.
func comesAbout(inits, mains string, ended bool) bool {
	if ended && strings.ContainsAny(inits+mains, "-rn") {
		return false
	}
	past := true
	for at := 0; at < len(inits); at += 2 {
		plain, state := inits[at] == 'i', inits[at+1]
		if !past && state != '-' || plain && state == 'n' {
			return false
		}
		past = past && (plain && state == '0' || !plain && (state == 'r' || ended))
	}
	begun := strings.Trim(mains, "-") != ""
	if begun && !past { // a sidecar may end, and be started anew, once the pod has begun
		past = true
		for at := 0; at < len(inits); at += 2 {
			past = past && (inits[at] == 'i' && inits[at+1] == '0' || inits[at] == 's' && strings.ContainsRune("rn03", rune(inits[at+1])))
		}
	}
	return past || !begun
}

func TestWritePhases(t *testing.T) {
	path := os.Getenv("MEWS_PHASES")
	if path == "" {
		t.Skip("MEWS_PHASES names no file")
	}
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	table := csv.NewWriter(out)
	defer table.Flush()
	table.Write([]string{"policy", "inits", "mains", "ended", "phase"})
	inits := []string{""}
	for _, kind := range []string{"i", "s"} {
		for _, state := range "-rn03" {
			inits = append(inits, kind+string(state))
		}
	}
	for _, first := range []string{"i0", "i3", "sr", "sn", "s3", "i-", "s-"} {
		for _, second := range []string{"i-", "ir", "i0", "i3", "s-", "sr", "s0"} {
			inits = append(inits, first+second)
		}
	}
	mains := []string{"-", "r", "0", "3", "--", "-r", "rr", "r0", "r3", "00", "03", "33", "-0", "-3"}
	for _, policy := range []v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever} {
		for _, before := range inits {
			for _, main := range mains {
				for _, ended := range []bool{false, true} {
					if comesAbout(before, main, ended) {
						table.Write([]string{string(policy), before, main, fmt.Sprint(ended), phaseOf(policy, before, main, ended)})
					}
				}
			}
		}
	}
}
