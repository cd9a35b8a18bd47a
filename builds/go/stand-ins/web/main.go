// Web stands in for the images of web servers and of whatever else a test wants to stay up. Whatever its arguments are,
// it answers every HTTP request on port 80, and on 9090 as Prometheus, with the name of its pod and ends when it is told
// to; as `web get URL` it prints what the URL answers, for tests of the network between pods.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "get" {
		if err := get(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	go serve(":80")
	go serve(":9090")
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	<-signals
}

func get(url string) error {
	client := http.Client{Timeout: 5 * time.Second}
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(os.Stdout, answer.Body)
	return err
}

// A second container of a pod cannot listen on the same port; it stays up all the same.
func serve(address string) {
	name, _ := os.Hostname()
	err := http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, name)
	}))
	fmt.Fprintln(os.Stderr, err)
}
