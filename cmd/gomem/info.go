package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/gomem/gomem"
)

// devicesCmd is gomem devices.
type devicesCmd struct {
	JSON bool `name:"json" help:"Print a JSON array. Sizes are bytes."`
}

func (devicesCmd) examples() string {
	return `
  gomem devices
  gomem devices --json
`
}

// deviceInfo describes a device.
type deviceInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Threads     int    `json:"threads"`
	Memory      int64  `json:"memory_bytes"` // 0: unknown, or none is needed
}

// Run lists the devices.
func (c *devicesCmd) Run(e *env) error {
	about := map[string]deviceInfo{
		gomem.CPU: {Description: "the processor, with a device memory of the budget's size and " +
			"real copies", Threads: runtime.GOMAXPROCS(0), Memory: machineMemory()},
		gomem.Null: {Description: "computes nothing and keeps count of memory, for models of any " +
			"size"},
	}
	var list []deviceInfo
	for _, name := range gomem.Devices() {
		d := about[name]
		d.Name = name
		list = append(list, d)
	}
	if c.JSON {
		return json.NewEncoder(e.stdout).Encode(list)
	}
	t := newTable(3, 4)
	t.AppendHeader(table.Row{"device", "what it is", "threads", "memory"})
	for _, d := range list {
		memory := "-"
		if d.Memory > 0 {
			memory = size(d.Memory)
		}
		t.AppendRow(table.Row{d.Name, d.Description, d.Threads, memory})
	}
	printTable(e.stdout, t)
	return nil
}

// versionCmd is gomem version.
type versionCmd struct {
	JSON bool `name:"json" help:"Print a JSON object."`
}

func (versionCmd) examples() string {
	return `
  gomem version
  gomem version --json
`
}

// versionInfo is where a binary comes from.
type versionInfo struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from a tree with changes
	Platform string `json:"platform"`
}

// Run prints the version.
func (c *versionCmd) Run(e *env) error {
	v := versionInfo{Version: "(unknown)", Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if b, ok := debug.ReadBuildInfo(); ok {
		v.Version = b.Main.Version
		for _, s := range b.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Commit = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	if c.JSON {
		return json.NewEncoder(e.stdout).Encode(v)
	}
	line := fmt.Sprintf("gomem %s %s %s", v.Version, v.Go, v.Platform)
	if v.Commit != "" {
		line += " commit " + v.Commit
	}
	if v.Modified {
		line += " (modified)"
	}
	_, err := fmt.Fprintln(e.stdout, line)
	return err
}
