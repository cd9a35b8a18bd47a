// Flannel is a CNI plugin, as that of the same name: flanneld has written down the node's subnet, and the plugin bridge,
// which is beside this one, does the rest.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const subnetFile = "/run/flannel/subnet.env"

type object = map[string]any

func main() {
	if err := run(); err != nil {
		json.NewEncoder(os.Stdout).Encode(object{"cniVersion": "1.0.0", "code": 999, "msg": err.Error()})
		os.Exit(1)
	}
}

func run() error {
	var given object
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		return err
	}
	if os.Getenv("CNI_COMMAND") == "VERSION" {
		return json.NewEncoder(os.Stdout).Encode(object{"cniVersion": "1.0.0", "supportedVersions": []string{"0.4.0", "1.0.0"}})
	}
	subnet, err := subnet()
	if err != nil {
		return err
	}
	_, node, err := net.ParseCIDR(subnet["FLANNEL_SUBNET"])
	if err != nil {
		return err
	}
	wanted := object{
		"type": "bridge", "name": given["name"], "cniVersion": given["cniVersion"],
		"mtu": json.Number(subnet["FLANNEL_MTU"]), "ipMasq": subnet["FLANNEL_IPMASQ"] != "true",
		"ipam": object{
			"type":   "host-local",
			"ranges": [][]object{{{"subnet": node.String()}}},
			"routes": []object{{"dst": subnet["FLANNEL_NETWORK"]}},
		},
	}
	if delegate, ok := given["delegate"].(object); ok {
		for name, value := range delegate {
			wanted[name] = value
		}
	}
	return bridge(wanted)
}

// The variables of the file that flanneld writes when it knows the node's subnet.
func subnet() (map[string]string, error) {
	text, err := os.ReadFile(subnetFile)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, line := range strings.Split(string(text), "\n") {
		if name, value, ok := strings.Cut(line, "="); ok {
			found[name] = value
		}
	}
	return found, nil
}

func bridge(wanted object) error {
	text, err := json.Marshal(wanted)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	plugin := exec.Command(filepath.Join(filepath.Dir(self), "bridge"))
	plugin.Stdin, plugin.Stdout = bytes.NewReader(text), os.Stdout
	if err := plugin.Run(); err != nil {
		return fmt.Errorf("the plugin bridge: %w", err)
	}
	return nil
}
