// A program of a pod that knows nothing of what runs it: it listens on one port, and tells what it sees.
package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
)

const port = ":8080"

// seen answers with the files that are asked for, the host's name, the GPUs and the addresses of a name.
func seen(w http.ResponseWriter, r *http.Request) {
	found := map[string]any{"arguments": os.Args[1:], "color": os.Getenv("COLOR"), "remote": r.RemoteAddr}
	found["hostname"], _ = os.Hostname()
	found["local"] = r.Context().Value(http.LocalAddrContextKey).(net.Addr).String()
	files := map[string]string{}
	for _, name := range r.URL.Query()["file"] {
		text, err := os.ReadFile(name)
		if err != nil {
			text = []byte("error: " + err.Error())
		}
		files[name] = string(text)
	}
	found["files"] = files
	if name := r.URL.Query().Get("write"); name != "" {
		err := os.WriteFile(name, []byte("written"), 0o600)
		found["write"] = err == nil
	}
	if name := r.URL.Query().Get("name"); name != "" {
		found["addresses"], _ = net.LookupHost(name)
	}
	if r.URL.Query().Get("gpus") != "" {
		listed, err := exec.Command("nvidia-smi", "-L").CombinedOutput()
		found["gpus"] = strings.Split(strings.TrimSpace(string(listed)), "\n")
		if err != nil {
			found["gpus"] = []string{err.Error() + string(listed)}
		}
	}
	if url := r.URL.Query().Get("ask"); url != "" {
		answer, err := http.Get(url)
		if err != nil {
			found["answer"] = "error: " + err.Error()
		} else {
			body, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			found["answer"] = string(body)
		}
	}
	if address := r.URL.Query().Get("dial"); address != "" {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			found["ends"] = []string{err.Error()}
		} else {
			found["ends"] = []string{conn.LocalAddr().String(), conn.RemoteAddr().String()}
			conn.Close()
		}
	}
	json.NewEncoder(w).Encode(found)
}

// review refuses all objects, as a webhook of admission.
func review(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Request struct{ UID string }
	}
	json.NewDecoder(r.Body).Decode(&asked)
	status := map[string]any{"message": "refused for " + r.RemoteAddr}
	response := map[string]any{"uid": asked.Request.UID, "allowed": false, "status": status}
	w.Header().Set("Content-Type", "application/json")
	answer := map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
	json.NewEncoder(w).Encode(answer)
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "healthy" {
		where := "http://127.0.0.1" + port + "/healthz"
		if strings.HasPrefix(os.Args[2], "http") {
			where = os.Args[2]
		}
		answer, err := http.Get(where)
		if err != nil || answer.StatusCode != http.StatusOK {
			os.Exit(1)
		}
		return
	}
	http.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
	http.HandleFunc("/", seen)
	http.HandleFunc("/review", review)
	if _, err := os.Stat("/tls"); err == nil {
		go http.ListenAndServeTLS(":8443", "/tls/tls.crt", "/tls/tls.key", nil)
	}
	if err := http.ListenAndServe(port, nil); err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}
