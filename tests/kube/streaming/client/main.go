// A program as others write them: commands, attachments and forwarded ports with client-go's own executors.
//
//	streamclient exec|exec-ws|attach NAMESPACE POD COMMAND...   standard input and output are the command's
//	streamclient forward NAMESPACE POD PORT                     sends standard input there, prints what comes back
//	streamclient whoami                                         asks with InClusterConfig for the pods of its namespace
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"
)

func check(err error) {
	var ended exec.CodeExitError
	if errors.As(err, &ended) {
		os.Exit(ended.Code)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
}

func main() {
	verb := os.Args[1]
	if verb == "whoami" {
		whoami()
		return
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	check(err)
	clients, err := kubernetes.NewForConfig(config)
	check(err)
	namespace, pod := os.Args[2], os.Args[3]
	request := clients.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(pod)
	if verb == "forward" {
		forward(config, request.SubResource("portforward"), os.Args[4])
		return
	}
	if verb == "attach" {
		request = request.SubResource("attach").VersionedParams(
			&corev1.PodAttachOptions{Stdin: true, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	} else {
		request = request.SubResource("exec").VersionedParams(
			&corev1.PodExecOptions{Stdin: true, Stdout: true, Stderr: true, Command: os.Args[4:]}, scheme.ParameterCodec)
	}
	executor, err := remotecommand.NewSPDYExecutor(config, "POST", request.URL())
	if verb == "exec-ws" {
		executor, err = remotecommand.NewWebSocketExecutor(config, "GET", request.URL().String())
	}
	check(err)
	check(executor.StreamWithContext(context.Background(), remotecommand.StreamOptions{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	}))
}

func forward(config *rest.Config, request *rest.Request, port string) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	check(err)
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, "POST", request.URL())
	stop, ready := make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.New(dialer, []string{"0:" + port}, stop, ready, io.Discard, os.Stderr)
	check(err)
	go func() { check(forwarder.ForwardPorts()) }()
	<-ready
	ports, err := forwarder.GetPorts()
	check(err)
	sent, err := io.ReadAll(os.Stdin)
	check(err)
	for range 3 { // several connections through one forwarding
		connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", ports[0].Local))
		check(err)
		_, err = connection.Write(sent)
		check(err)
		var back bytes.Buffer
		_, err = io.Copy(&back, connection)
		check(err)
		fmt.Println(back.Len())
		connection.Close()
	}
	close(stop)
}

func whoami() {
	config, err := rest.InClusterConfig()
	check(err)
	clients, err := kubernetes.NewForConfig(config)
	check(err)
	namespace, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	check(err)
	review, err := clients.CoreV1().Pods(string(namespace)).List(context.Background(), metav1.ListOptions{})
	check(err)
	fmt.Println(config.Host, string(namespace), len(review.Items))
}
