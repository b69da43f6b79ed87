package control

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomem/gomem/internal/longtest"
)

// TestDiskFull: the node whose disk is full says so, its process goes on, and all nodes
// come to rest.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=160m"); err != nil {
		t.Skip("a small disk needs root: ", err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	cfg := quick(one(t))
	cfg.Dir = filepath.Join(dir, "etcd")
	all := job(t, cfg, 2, 2, 2)
	here := alive(t, all[1])
	from := time.Now()
	val := make([]byte, 1<<20)
	var err error
	for i := 0; err == nil && i < 400; i++ {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		err = all[0].Put(ctx, fmt.Sprint("fill", i), val)
		cancel()
	}
	var failed *ServerError
	if !errors.As(err, &failed) || !strings.Contains(failed.Why, "no space left") {
		t.Fatalf("a full disk: %v", err)
	}
	t.Logf("noticed after %v: %v", time.Since(from).Round(time.Millisecond), err)
	<-all[0].own().gone
	from = time.Now()
	t.Logf("the other node rests after %v", await(t, here, "the other node").Sub(from))
}
