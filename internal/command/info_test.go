package command

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestVersionOf: a version has the commit that was built, and says whether files differ from it.
func TestVersionOf(t *testing.T) {
	build := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123abcd"}
	modified := func(is string) debug.BuildSetting {
		return debug.BuildSetting{Key: "vcs.modified", Value: is}
	}
	on := " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	for _, c := range []struct {
		build *debug.BuildInfo
		want  string
	}{
		{nil, "gomem (unknown)" + on},
		{build(""), "gomem (unknown)" + on},
		{build("(devel)"), "gomem (devel)" + on},
		{build("v1.2.3", commit, modified("false")), "gomem v1.2.3" + on + " commit 0123abcd"},
		{build("v1.2.3", commit, modified("true")), "gomem v1.2.3" + on +
			" commit 0123abcd (modified)"},
	} {
		if got := versionOf(c.build).String(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.build, got, c.want)
		}
	}
}
