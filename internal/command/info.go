package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
)

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

// thisVersion is where this program comes from.
func thisVersion() versionInfo {
	b, _ := debug.ReadBuildInfo()
	return versionOf(b)
}

// versionOf is what a build says of itself: of a build without modules, nil, the toolchain alone.
func versionOf(b *debug.BuildInfo) versionInfo {
	v := versionInfo{Version: "(unknown)", Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if b == nil {
		return v
	}
	v.Version = cmp.Or(b.Main.Version, v.Version)
	for _, s := range b.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// String is one line.
func (v versionInfo) String() string {
	line := fmt.Sprintf("gomem %s %s %s", v.Version, v.Go, v.Platform)
	if v.Commit != "" {
		line += " commit " + v.Commit
	}
	if v.Modified {
		line += " (modified)"
	}
	return line
}

// Run prints the version.
func (c *versionCmd) Run(e *env) error {
	if c.JSON {
		return json.NewEncoder(e.stdout).Encode(thisVersion())
	}
	_, err := fmt.Fprintln(e.stdout, thisVersion())
	return err
}
