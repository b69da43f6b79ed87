package house_test

import (
	"fmt"
	"os"
	"testing"
)

// TestMain has the tests run at the module's root, of whose files they speak.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
