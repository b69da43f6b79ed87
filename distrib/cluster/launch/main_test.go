package launch_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/gomem/gomem/distrib/cluster/launch"
)

// roleVar makes this test's executable a process of a job.
const roleVar = "GOMEM_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		os.Exit(play(role))
	}
	os.Exit(m.Run())
}

// play is what a process of a job does.
func play(role string) int {
	w, err := launch.Find(launch.System(), launch.Flags{})
	if err != nil {
		fmt.Println(err)
		return 2
	}
	switch role {
	case "find":
		fmt.Printf("%s %d/%d local %d/%d at %s\n", w.Launcher, w.Rank, w.Size, w.Local,
			w.LocalSize, w.Master)
	}
	return 0
}
