package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// lab is network namespaces on this machine, one a node, whose links to a bridge have a
// rate each way: real sockets and real packets, on links as slow as a cluster's. It needs
// root, and the programs ip and tc. The kernel here may lack netem, so there is no
// latency but the rates'.
type lab struct {
	name  string // of the bridge; the namespaces' begin with it
	nodes int
}

// errNoLab says why there are no namespaces.
var errNoLab = errors.New("network namespaces need root, ip and tc")

// newLab makes nodes with links of so many bits a second. Namespaces of the same name are
// removed first.
func newLab(ctx context.Context, nodes int, bps float64) (*lab, error) {
	for _, program := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(program); err != nil || os.Geteuid() != 0 {
			return nil, errNoLab
		}
	}
	l := &lab{name: "gm" + strconv.Itoa(os.Getpid()%100000), nodes: nodes}
	cmds := []string{
		"ip link add " + l.name + " type bridge",
		"ip link set " + l.name + " up",
	}
	for i := range nodes {
		ns, port := l.ns(i), l.port(i)
		cmds = append(cmds, "ip netns add "+ns,
			"ip link add "+port+" type veth peer name eth0 netns "+ns,
			"ip link set "+port+" master "+l.name+" up",
			"ip -n "+ns+" addr add "+l.addr(i)+"/24 dev eth0",
			"ip -n "+ns+" link set eth0 up",
			"ip -n "+ns+" link set lo up")
	}
	for _, c := range cmds {
		if err := command(ctx, c); err != nil {
			return nil, errors.Join(err, l.close())
		}
	}
	for i := range nodes {
		if err := l.rate(ctx, i, bps); err != nil {
			return nil, errors.Join(err, l.close())
		}
	}
	return l, nil
}

func (l *lab) ns(i int) string   { return fmt.Sprintf("%s-%d", l.name, i) }
func (l *lab) port(i int) string { return fmt.Sprintf("%sp%d", l.name, i) }
func (l *lab) addr(i int) string { return fmt.Sprintf("10.77.0.%d", i+1) }

// A link lets pass at once what it carries in labBurst, a few packets at least: one that lets
// a bucket of kilobytes pass after every pause is a fast one for whoever sends as much. What
// waits for it has room, so that nothing is dropped.
const (
	labBurst      = 10 * time.Millisecond
	labLeastBurst = 5000
	labQueue      = 256 << 10
)

// rate sets both directions of a node's link, bits a second; also while they are used.
func (l *lab) rate(ctx context.Context, node int, bps float64) error {
	tbf := fmt.Sprintf("root tbf rate %.0fbit burst %.0f limit %d", bps,
		max(labLeastBurst, bps/8*labBurst.Seconds()), labQueue)
	return errors.Join(
		command(ctx, "tc -n "+l.ns(node)+" qdisc replace dev eth0 "+tbf),
		command(ctx, "tc qdisc replace dev "+l.port(node)+" "+tbf))
}

// exec is a command on a node.
func (l *lab) exec(ctx context.Context, node int, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", l.ns(node), name},
		args...)...)
}

// bytes is what has left a node, with all headers.
func (l *lab) bytes(ctx context.Context, node int) (int64, error) {
	out, err := l.exec(ctx, node, "cat", "/sys/class/net/eth0/statistics/tx_bytes").Output()
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
}

// close removes everything.
func (l *lab) close() error {
	var errs []error
	ctx := context.Background()
	for i := range l.nodes {
		errs = append(errs, command(ctx, "ip netns del "+l.ns(i)))
	}
	return errors.Join(append(errs, command(ctx, "ip link del "+l.name))...)
}

func command(ctx context.Context, line string) error {
	words := strings.Fields(line)
	out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", line, err, strings.TrimSpace(string(out)))
	}
	return nil
}
