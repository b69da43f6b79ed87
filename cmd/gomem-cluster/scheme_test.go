//go:build linux

package main

import (
	"net"
	"strings"
	"testing"
)

// TestOtherScheme: workers that were told to keep in step otherwise than worker 0 are refused, and
// do not wait for each other for ever.
func TestOtherScheme(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at, dir := l.Addr().String(), t.TempDir()
	l.Close()
	worker := func(rank, sync string) *job {
		return start(t, dir, "--workers", "2", "--master", at, "--rank", rank, "--steps", "3",
			"--sync", sync)
	}
	for _, j := range []*job{worker("0", "ring"), worker("1", "bosen")} {
		const want = "worker 1 has other settings than worker 0"
		if status := j.end(); status != 1 || !strings.Contains(j.stderr.String(), want) {
			t.Errorf("status %d: %s", status, j.stderr.String())
		}
	}
}
