package lab

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"
)

func nodes(t *testing.T, n int) *Lab {
	t.Helper()
	l, err := Lossy(t.Context(), n)
	if errors.Is(err, ErrNone) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		for i := range n {
			if Command(context.Background(), "ip link show "+l.port(i)) == nil {
				t.Errorf("node %d's link is still there", i)
			}
		}
	})
	return l
}

// send has one node send bytes to another, and reports what came within the time.
func send(t *testing.T, l *Lab, from, to int, within time.Duration) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	const listen = `import socket,sys
s=socket.create_server(("0.0.0.0",7))
print("here",flush=True)
c,_=s.accept()
n=0
while n<1<<20:
  b=c.recv(1<<16)
  if not b: break
  n+=len(b)
c.send(b"x")
`
	const talk = `import socket,sys
c=socket.create_connection((sys.argv[1],7))
c.sendall(bytes(1<<20)); c.recv(1)
`
	server := l.Exec(ctx, to, "python3", "-c", listen)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	err = l.Exec(ctx, from, "python3", "-c", talk, l.Addr(to)).Run()
	cancel()
	_ = server.Wait()
	return err == nil
}

// TestLinks: nodes reach each other, also over a link that loses some of what it carries; over one
// that is cut, in one direction too, they do not, and do again when it is mended.
func TestLinks(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	l := nodes(t, 3)
	if !send(t, l, 0, 2, time.Minute) {
		t.Fatal("node 0 does not reach node 2")
	}
	l.Lose(2, 0.05, 0.05)
	if !send(t, l, 0, 2, time.Minute) {
		t.Error("with 5 % of loss node 0 does not reach node 2")
	}
	for _, cut := range [][2]float64{{1, 0}, {0, 1}, {1, 1}} {
		l.Lose(2, cut[0], cut[1])
		if send(t, l, 0, 2, 2*time.Second) {
			t.Errorf("node 0 reaches node 2, which loses %v", cut)
		}
		if !send(t, l, 0, 1, time.Minute) {
			t.Errorf("node 0 does not reach node 1 while node 2 loses %v", cut)
		}
	}
	l.Lose(2, 0, 0)
	if !send(t, l, 1, 2, time.Minute) {
		t.Error("node 1 does not reach node 2, whose link was mended")
	}
}

// TestRate: a link is as slow as it is told to be.
func TestRate(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	l := nodes(t, 2)
	if err := l.Rate(t.Context(), 1, 4e6); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if !send(t, l, 0, 1, time.Minute) {
		t.Fatal("it does not arrive")
	}
	if took := time.Since(began); took < 1900*time.Millisecond { // 1 MiB at 0.5 MB/s
		t.Errorf("1 MiB arrives within %v", took)
	}
	if err := l.Rate(t.Context(), 1, 0); err != nil {
		t.Error(err)
	}
}
