// A scheduler extender for shared GPUs in a few lines, that speaks the published protocol and asks the API for
// everything. It is for tests: with FAULT=218 it has a fault that users of the public extender reported, and takes a
// node's sum for the memory of one GPU.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"
)

const (
	resource = "aliyun.com/gpu-mem"
	index    = "ALIYUN_COM_GPU_MEM_IDX"
	amount   = "ALIYUN_COM_GPU_MEM_POD"
)

type object = map[string]any

type cluster struct {
	server, token string
	client        *http.Client
}

func at(value any, path ...string) any {
	for _, name := range path {
		inner, _ := value.(object)
		value = inner[name]
	}
	return value
}

func items(value any) []any { list, _ := value.([]any); return list }

func text(value any) string { found, _ := value.(string); return found }

func number(value any) int { found, _ := strconv.Atoi(fmt.Sprint(value)); return found }

// The kubeconfig that Mews writes is JSON.
func connect(path string) (*cluster, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var config object
	if err := json.Unmarshal(raw, &config); err != nil {
		return nil, err
	}
	server := at(items(config["clusters"])[0], "cluster")
	roots := x509.NewCertPool()
	if data := text(at(server, "certificate-authority-data")); data != "" {
		pem, _ := base64.StdEncoding.DecodeString(data)
		roots.AppendCertsFromPEM(pem)
	} else if file := text(at(server, "certificate-authority")); file != "" {
		pem, _ := os.ReadFile(file)
		roots.AppendCertsFromPEM(pem)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	token := text(at(items(config["users"])[0], "user", "token"))
	return &cluster{text(at(server, "server")), token, &http.Client{Transport: transport}}, nil
}

func (c *cluster) call(method, path, kind string, body any) (object, error) {
	sent, _ := json.Marshal(body)
	request, _ := http.NewRequest(method, c.server+path, bytes.NewReader(sent))
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Content-Type", kind)
	answer, err := c.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	raw, _ := io.ReadAll(answer.Body)
	if answer.StatusCode >= 300 {
		return nil, fmt.Errorf("%s %s: %s", method, path, raw)
	}
	var found object
	return found, json.Unmarshal(raw, &found)
}

func requested(pod any) int {
	sum := 0
	for _, container := range items(at(pod, "spec", "containers")) {
		if asked := at(container, "resources", "limits", resource); asked != nil {
			sum += number(asked)
		}
	}
	return sum
}

// What each GPU of a node has left, all of them being taken for equal, as the public extender does.
func (c *cluster) free(node string) ([]int, int, error) {
	found, err := c.call("GET", "/api/v1/nodes/"+node, "application/json", nil)
	if err != nil {
		return nil, 0, err
	}
	capacity := at(found, "status", "capacity")
	count := number(at(capacity, "aliyun.com/gpu-count"))
	if count < 1 {
		return nil, 0, nil
	}
	size := number(at(capacity, resource)) / count
	left := make([]int, count)
	for each := range left {
		left[each] = size
	}
	pods, err := c.call("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3D"+node, "application/json", nil)
	if err != nil {
		return nil, 0, err
	}
	for _, pod := range items(pods["items"]) {
		phase, notes := text(at(pod, "status", "phase")), at(pod, "metadata", "annotations")
		if named := text(at(notes, index)); named != "" && phase != "Succeeded" && phase != "Failed" {
			left[number(named)] -= number(at(notes, amount))
		}
	}
	return left, size, nil
}

// The GPU with the least free memory that is enough, or -1.
func choose(left []int, asked int) int {
	best, sum := -1, 0
	for each, free := range left {
		sum += free
		if free >= asked && (best < 0 || free < left[best]) {
			best = each
		}
	}
	if best < 0 && os.Getenv("FAULT") == "218" && sum >= asked {
		return 0
	}
	return best
}

func (c *cluster) filter(call object) object {
	passed, failed := []string{}, map[string]string{}
	for _, name := range items(call["NodeNames"]) {
		left, _, err := c.free(text(name))
		if err != nil {
			return object{"Error": err.Error()}
		}
		if choose(left, requested(call["Pod"])) < 0 {
			failed[text(name)] = "Insufficient GPU Memory in one device"
		} else {
			passed = append(passed, text(name))
		}
	}
	return object{"NodeNames": passed, "FailedNodes": failed, "Error": ""}
}

func (c *cluster) bind(call object) error {
	name, node := text(call["PodName"]), text(call["Node"])
	place := "/api/v1/namespaces/" + text(call["PodNamespace"]) + "/pods/" + name
	pod, err := c.call("GET", place, "application/json", nil)
	if err != nil {
		return err
	}
	left, size, err := c.free(node)
	if err != nil {
		return err
	}
	chosen := choose(left, requested(pod))
	if chosen < 0 {
		return fmt.Errorf("Insufficient GPU Memory in one device")
	}
	notes := map[string]string{
		index:                            strconv.Itoa(chosen),
		amount:                           strconv.Itoa(requested(pod)),
		"ALIYUN_COM_GPU_MEM_DEV":         strconv.Itoa(size),
		"ALIYUN_COM_GPU_MEM_ASSIGNED":    "false",
		"ALIYUN_COM_GPU_MEM_ASSUME_TIME": strconv.FormatInt(time.Now().UnixNano(), 10),
	}
	patch := object{"metadata": object{"annotations": notes}}
	if _, err := c.call("PATCH", place, "application/merge-patch+json", patch); err != nil {
		return err
	}
	binding := object{
		"apiVersion": "v1", "kind": "Binding", "metadata": object{"name": name},
		"target": object{"kind": "Node", "name": node},
	}
	_, err = c.call("POST", place+"/binding", "application/json", binding)
	return err
}

func main() {
	cluster, err := connect(os.Getenv("KUBECONFIG"))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	answer := func(w http.ResponseWriter, status int, body object) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(body)
	}
	read := func(r *http.Request) (call object) { json.NewDecoder(r.Body).Decode(&call); return }
	http.HandleFunc("/gpushare-scheduler/filter", func(w http.ResponseWriter, r *http.Request) {
		answer(w, 200, cluster.filter(read(r)))
	})
	http.HandleFunc("/gpushare-scheduler/bind", func(w http.ResponseWriter, r *http.Request) {
		if err := cluster.bind(read(r)); err != nil {
			answer(w, 500, object{"Error": err.Error()})
			return
		}
		answer(w, 200, object{"Error": ""})
	})
	fmt.Println(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
	os.Exit(1)
}
