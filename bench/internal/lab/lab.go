// Package lab makes bad networks on this machine: namespaces whose links have a rate, lose packets,
// or are cut, one way or both. It is what benchmarks run processes in.
package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Lab is network namespaces on this machine, one a node, whose links to a bridge have a
// rate each way: real sockets and real packets, on links as slow as a cluster's. It needs
// root, and the programs ip and tc. The kernel here may lack netem, so there is no
// latency but the rates'.
type Lab struct {
	Bridge string // its name; the namespaces' begin with it
	Nodes  int
	sw     *sw // instead of the bridge; nil: there is one
}

// ErrNone says why there are no namespaces.
var ErrNone = errors.New("network namespaces need root, ip and tc")

// New makes nodes with links of so many bits a second.
func New(ctx context.Context, nodes int, bps float64) (*Lab, error) {
	l, err := named(nodes)
	if err != nil {
		return nil, err
	}
	cmds := []string{
		"ip link add " + l.Bridge + " type bridge",
		"ip link set " + l.Bridge + " up",
	}
	for i := range nodes {
		ns, port := l.Namespace(i), l.port(i)
		cmds = append(append(cmds, l.link(i)...), "ip -n "+ns+" link set eth0 up",
			"ip link set "+port+" master "+l.Bridge+" up")
	}
	if err := l.run(ctx, cmds); err != nil {
		return nil, err
	}
	for i := range nodes {
		if err := l.Rate(ctx, i, bps); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

// Lossy makes nodes with links as fast as the machine that can lose packets: a switch of its own
// hands on what they send, and is slower than a bridge.
func Lossy(ctx context.Context, nodes int) (*Lab, error) {
	l, err := named(nodes)
	if err != nil {
		return nil, err
	}
	var cmds, ports []string
	for i := range nodes {
		eth := "ip -n " + l.Namespace(i) + " link set eth0 "
		cmds = append(append(cmds, l.link(i)...), eth+fmt.Sprintf("address 02:67:6d:00:00:%02x", i),
			eth+"gso_max_size 1500 gso_max_segs 1", // so that what is lost is one packet
			eth+"up", "ip link set "+l.port(i)+" up")
		ports = append(ports, l.port(i))
	}
	if err := l.run(ctx, cmds); err != nil {
		return nil, err
	}
	if l.sw, err = newSwitch(ports); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// named is a lab that has a name and nothing else.
func named(nodes int) (*Lab, error) {
	for _, program := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(program); err != nil || os.Geteuid() != 0 {
			return nil, ErrNone
		}
	}
	// What was closed just now may still be there.
	return &Lab{Bridge: fmt.Sprint("gm", rand.Uint32N(1e8)), Nodes: nodes}, nil
}

// link are the commands that make a node and its link.
func (l *Lab) link(i int) []string {
	ns := l.Namespace(i)
	return []string{"ip netns add " + ns,
		"ip link add " + l.port(i) + " type veth peer name eth0 netns " + ns,
		"ip -n " + ns + " addr add " + l.Addr(i) + "/24 dev eth0",
		"ip -n " + ns + " link set lo up"}
}

// run runs lines. If one fails, nothing is left.
func (l *Lab) run(ctx context.Context, lines []string) error {
	for _, c := range lines {
		if err := Command(ctx, c); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	return nil
}

// Lose sets which part of the packets that leave a node of [Lossy] and that come to it are lost: 0
// is none, 1 a link that is cut.
func (l *Lab) Lose(node int, leaving, coming float64) { l.sw.lose(node, leaving, coming) }

// Namespace is the name of a node's.
func (l *Lab) Namespace(i int) string { return fmt.Sprintf("%s-%d", l.Bridge, i) }
func (l *Lab) port(i int) string      { return fmt.Sprintf("%sp%d", l.Bridge, i) }

// Addr is the address of a node.
func (l *Lab) Addr(i int) string { return fmt.Sprintf("10.77.0.%d", i+1) }

// A link lets pass at once what it carries in burst, a few packets at least and a few more at
// most: one that lets a bucket of kilobytes pass after every pause is a fast one for whoever
// sends as much. What waits for it has room, so that nothing is dropped.
const (
	burst      = 10 * time.Millisecond
	leastBurst = 5000
	mostBurst  = 16 << 10 // or that of mostTime
	mostTime   = time.Millisecond
	queue      = 256 << 10
)

// Rate sets both directions of a node's link, bits a second; also while they are used. 0 is as fast
// as the machine, of one that had a rate.
func (l *Lab) Rate(ctx context.Context, node int, bps float64) error {
	if bps == 0 {
		return errors.Join(Command(ctx, "tc -n "+l.Namespace(node)+" qdisc del dev eth0 root"),
			Command(ctx, "tc qdisc del dev "+l.port(node)+" root"))
	}
	second := bps / 8 // in bytes
	most := max(mostBurst, second*mostTime.Seconds())
	tbf := fmt.Sprintf("root tbf rate %.0fbit burst %.0f limit %d", bps,
		min(max(leastBurst, second*burst.Seconds()), most), queue)
	return errors.Join(
		Command(ctx, "tc -n "+l.Namespace(node)+" qdisc replace dev eth0 "+tbf),
		Command(ctx, "tc qdisc replace dev "+l.port(node)+" "+tbf))
}

// Exec is a command on a node.
func (l *Lab) Exec(ctx context.Context, node int, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", l.Namespace(node), name},
		args...)...)
}

// Sent is how many bytes have left a node, with all headers.
func (l *Lab) Sent(ctx context.Context, node int) (int64, error) {
	out, err := l.Exec(ctx, node, "cat", "/sys/class/net/eth0/statistics/tx_bytes").Output()
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
}

// Close removes everything.
func (l *Lab) Close() error {
	var errs []error
	ctx := context.Background()
	if l.sw != nil {
		l.sw.close()
	}
	for i := range l.Nodes { // a connection that is ending keeps a namespace, and so its link
		if _, err := os.Stat("/sys/class/net/" + l.port(i)); err == nil {
			errs = append(errs, Command(ctx, "ip link del "+l.port(i)))
		}
		errs = append(errs, Command(ctx, "ip netns del "+l.Namespace(i)))
	}
	if l.sw == nil {
		errs = append(errs, Command(ctx, "ip link del "+l.Bridge))
	}
	return errors.Join(errs...)
}

// Command runs a line, without a shell.
func Command(ctx context.Context, line string) error {
	words := strings.Fields(line)
	out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", line, err, strings.TrimSpace(string(out)))
	}
	return nil
}
