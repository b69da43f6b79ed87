package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Lab is network namespaces on this machine, one a node, and the switch between their links.
type Lab struct {
	name  string // the namespaces' and links' begin with it
	nodes int
	sw    *sw
}

// ErrNone says why there are no namespaces.
var ErrNone = errors.New("network namespaces need root, ip and tc")

// New makes so many nodes, with links that are as fast as the machine; name, of at most eight
// letters, is no other lab's. It is [ErrNone] where there cannot be any. Close removes everything.
func New(ctx context.Context, name string, nodes int) (*Lab, error) {
	for _, program := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(program); err != nil || os.Geteuid() != 0 {
			return nil, ErrNone
		}
	}
	l := &Lab{name: name, nodes: nodes}
	for i := range nodes {
		for _, c := range l.link(i) {
			if err := run(ctx, c); err != nil {
				return nil, errors.Join(err, l.Close())
			}
		}
	}
	s, err := newSwitch(nodes, l.port)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	l.sw = s
	return l, nil
}

// link are the commands that make a node's namespace and link. Packets are no larger than on a
// wire, so that the one that is lost is one.
func (l *Lab) link(i int) []string {
	ns, port := l.ns(i), l.port(i)
	return []string{
		"ip netns add " + ns,
		"ip link add " + port + " type veth peer name eth0 netns " + ns,
		"ip -n " + ns + " link set eth0 address " + fmt.Sprintf("02:67:6d:00:00:%02x", i),
		"ip -n " + ns + " link set eth0 gso_max_size 1500 gso_max_segs 1",
		"ip -n " + ns + " addr add " + l.Addr(i) + "/24 dev eth0",
		"ip -n " + ns + " link set eth0 up",
		"ip -n " + ns + " link set lo up",
		"ip link set " + port + " up",
	}
}

func (l *Lab) ns(i int) string   { return fmt.Sprintf("%s-%d", l.name, i) }
func (l *Lab) port(i int) string { return fmt.Sprintf("%sp%d", l.name, i) }

// Addr is a node's address.
func (l *Lab) Addr(i int) string { return fmt.Sprintf("10.78.0.%d", i+1) }

// A link lets pass at once what it carries in burst, a few packets at least: one that lets a
// bucket of kilobytes pass after every pause is a fast one for whoever sends as much.
const (
	burst      = 10 * time.Millisecond
	leastBurst = 5000
	queued     = 256 << 10 // bytes that wait for a link before one is dropped
)

// Rate sets both directions of a node's link, bits a second, also while they are used; 0 is as
// fast as the machine.
func (l *Lab) Rate(ctx context.Context, node int, bps float64) error {
	inside, outside := "tc -n "+l.ns(node)+" qdisc ", "tc qdisc "
	if bps == 0 {
		return errors.Join(run(ctx, inside+"del dev eth0 root"),
			run(ctx, outside+"del dev "+l.port(node)+" root"))
	}
	tbf := fmt.Sprintf(" root tbf rate %.0fbit burst %.0f limit %d", bps,
		max(leastBurst, bps/8*burst.Seconds()), queued)
	return errors.Join(run(ctx, inside+"replace dev eth0"+tbf),
		run(ctx, outside+"replace dev "+l.port(node)+tbf))
}

// Lose sets which part of the packets that leave a node and that come to it are lost: 0 is none,
// 1 a link that is cut.
func (l *Lab) Lose(node int, leaving, coming float64) {
	l.sw.lose(node, leaving, coming)
}

// Exec is a command on a node.
func (l *Lab) Exec(ctx context.Context, node int, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", l.ns(node), name},
		args...)...)
}

// Close removes everything.
func (l *Lab) Close() error {
	if l.sw != nil {
		l.sw.close()
	}
	var errs []error
	for i := range l.nodes {
		if _, err := os.Stat("/sys/class/net/" + l.port(i)); err == nil {
			errs = append(errs, run(context.Background(), "ip link del "+l.port(i)))
		}
		if _, err := os.Stat("/run/netns/" + l.ns(i)); err == nil {
			errs = append(errs, run(context.Background(), "ip netns del "+l.ns(i)))
		}
	}
	return errors.Join(errs...)
}

func run(ctx context.Context, line string) error {
	words := strings.Fields(line)
	out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", line, err, strings.TrimSpace(string(out)))
	}
	return nil
}
