package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	units "github.com/docker/go-units"

	"github.com/gomem/gomem/distrib"
)

// Target is a node to look at.
type Target struct {
	Node distrib.NodeID
	Addr string // for data; "": it is not tried
	Ask  func(context.Context) (Facts, error)
}

// Row is what one check has found of one node.
type Row struct {
	Node   string // its rank
	Check  string // "reach", "round trip", "answer", "clock", "gomem" and so on
	OK     bool
	Detail string // what was found
	Remedy string // what to do; "" where nothing is wrong
}

// What Doctor takes for wrong.
const (
	maxOffset  = time.Second // of clocks: logs are hard to read beyond
	maxTrip    = 50 * time.Millisecond
	soonOver   = time.Hour       // a certificate's end
	askWithin  = 5 * time.Second // of one question
	tripsTried = 3               // the shortest counts
)

// visit is what was learnt of a target.
type visit struct {
	Target
	trip     time.Duration
	reach    error
	facts    Facts
	asked    error
	offset   time.Duration // of its clock to ours
	doubt    time.Duration // by how much that may be wrong
	answered time.Time     // by our clock
}

// Doctor looks at nodes from this one, all at once, and says what is wrong and what to do
// about it: rows by node, then in the order of the checks.
func Doctor(ctx context.Context, targets []Target) []Row {
	all := make([]*visit, len(targets))
	var wait sync.WaitGroup
	for i, t := range targets {
		all[i] = &visit{Target: t}
		wait.Go(func() { all[i].make(ctx) })
	}
	wait.Wait()
	slices.SortStableFunc(all, func(a, b *visit) int { return cmp.Compare(a.Node, b.Node) })
	usual := mostly(all)
	var rows []Row
	for _, v := range all {
		for _, check := range []func(*visit, *common) []Row{reach, trip, answer, clock, versions,
			certificate, memory, disk} {
			for _, r := range check(v, usual) {
				r.Node = strconv.Itoa(int(v.Node))
				rows = append(rows, r)
			}
		}
	}
	return rows
}

// make finds out what there is to know of a target.
func (v *visit) make(ctx context.Context) {
	if v.Addr != "" {
		v.knock(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	from := time.Now()
	v.facts, v.asked = v.Ask(ctx)
	v.answered = time.Now()
	v.doubt = v.answered.Sub(from) / 2
	v.offset = v.facts.Time.Sub(from.Add(v.doubt)).Round(time.Millisecond)
}

// knock connects, more than once: the first may wait for a name to be looked up.
func (v *visit) knock(ctx context.Context) {
	d := net.Dialer{Timeout: tryWithin}
	for range tripsTried {
		from := time.Now()
		c, err := d.DialContext(ctx, "tcp", v.Addr)
		if err != nil {
			v.reach = err
			return
		}
		took := time.Since(from)
		c.Close()
		if v.trip == 0 || took < v.trip {
			v.trip = took
		}
	}
}

// common is what most of the nodes that answer say; of two that as many say, the one of
// the lower rank.
type common struct{ gomem, golang, plan string }

func mostly(all []*visit) *common {
	most := func(field func(*Facts) string) string {
		count, best := map[string]int{}, ""
		for _, v := range all {
			if v.asked == nil {
				count[field(&v.facts)]++
			}
		}
		for _, v := range all {
			if x := field(&v.facts); v.asked == nil && count[x] > count[best] {
				best = x
			}
		}
		return best
	}
	return &common{most(func(f *Facts) string { return f.Gomem }),
		most(func(f *Facts) string { return f.Go }), most(func(f *Facts) string { return f.Plan })}
}

func found(check, detail string) []Row { return []Row{{Check: check, OK: true, Detail: detail}} }

func wrong(check, detail, remedy string) []Row {
	return []Row{{Check: check, Detail: detail, Remedy: remedy}}
}

func reach(v *visit, _ *common) []Row {
	switch {
	case v.Addr == "":
		return nil
	case v.reach == nil:
		return found("reach", v.Addr)
	}
	why := "the process is not up, or a firewall drops what is sent to this port: open it " +
		"between all nodes"
	if dns := (*net.DNSError)(nil); errors.As(v.reach, &dns) {
		why = "the name is not known here: give an address, or make the name known to all nodes"
	}
	return wrong("reach", v.reach.Error(), why)
}

func trip(v *visit, _ *common) []Row {
	switch {
	case v.trip == 0:
		return nil
	case v.trip > maxTrip:
		return wrong("round trip", v.trip.Round(time.Microsecond).String(), "workers that are "+
			"this far apart wait for one another: raise --staleness or place them nearer")
	}
	return found("round trip", v.trip.Round(time.Microsecond).String())
}

func answer(v *visit, _ *common) []Row {
	if v.asked == nil {
		return found("answer", v.facts.Host)
	}
	return wrong("answer", v.asked.Error(), "the node does not take part, or hangs: look at its "+
		"log, and restart it")
}

func clock(v *visit, _ *common) []Row {
	if v.asked != nil {
		return nil
	}
	detail := fmt.Sprintf("%+v, give or take %v", v.offset, v.doubt.Round(time.Microsecond))
	if off := v.offset.Abs(); off > maxOffset+v.doubt {
		return wrong("clock", detail, "start an NTP client there: training does not depend on it, "+
			"but certificates and logs do")
	}
	return found("clock", detail)
}

func versions(v *visit, usual *common) []Row {
	if v.asked != nil {
		return nil
	}
	same := func(check, has, most, remedy string) []Row {
		switch {
		case has == "" && most == "":
			return nil
		case has == most:
			return found(check, has)
		}
		return wrong(check, fmt.Sprintf("%q, others have %q", has, most), remedy)
	}
	rows := same("gomem", v.facts.Gomem, usual.gomem, "run the same binary everywhere")
	rows = append(rows, same("go", v.facts.Go, usual.golang,
		"build with one version of Go, or copy one binary")...)
	return append(rows, same("plan", v.facts.Plan, usual.plan,
		"give all nodes the same model, options and budgets: their graphs differ")...)
}

func certificate(v *visit, _ *common) []Row {
	if v.asked != nil || v.facts.Expires.IsZero() {
		return nil
	}
	left := v.facts.Expires.Sub(v.answered).Round(time.Minute)
	detail := fmt.Sprintf("ends %s, in %v", v.facts.Expires.UTC().Format(time.RFC3339), left)
	switch {
	case left <= 0:
		return wrong("certificate", detail, "the node must join again with the job's token")
	case left < soonOver:
		return wrong("certificate", detail, "it is renewed long before, if rank 0 is reached: "+
			"look at the node's log")
	}
	return found("certificate", detail)
}

func memory(v *visit, _ *common) []Row {
	return room(v, "memory", v.facts.Memory, v.facts.NeedMemory,
		"lower --host-memory, add --disk, or end what else runs there")
}

func disk(v *visit, _ *common) []Row {
	return room(v, "disk", v.facts.Disk, v.facts.NeedDisk,
		"free some of it, or name another directory")
}

func room(v *visit, check string, free, need int64, remedy string) []Row {
	if v.asked != nil || free < 0 {
		return nil
	}
	detail := units.BytesSize(float64(free)) + " free"
	if need > 0 {
		detail += ", " + units.BytesSize(float64(need)) + " needed"
	}
	if free < need {
		return wrong(check, detail, remedy)
	}
	return found(check, detail)
}
