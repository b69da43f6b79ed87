// Command transport measures one stream between two processes on loopback: the cluster's
// transport, plain and with TLS on both sides, beside TCP without anything, in the same
// run.
//
//	go run ./bench/distrib/transport                     # the table of docs/measurements
//	go run ./bench/distrib/transport -rounds 1 -total 64 # quickly
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/distrib/cluster/trust"
)

func main() {
	rounds := flag.Int("rounds", 5, "of each measurement, of which the median counts")
	total := flag.Int("total", 256, "MiB that a round sends")
	receive := flag.String("receive", "", "be the receiver of a kind (used by itself)")
	peer := flag.String("peer", "", "the sender's address (used by itself)")
	keys := flag.String("keys", "", "the file of the authority (used by itself)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if *receive != "" {
		err = receiver(*receive, *peer, *keys)
	} else {
		err = measure(ctx, os.Stdout, *rounds, *total)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// sizes are of messages, in MiB.
func sizes() []int { return []int{1, 8, 64} }

// kinds are what is measured, the first what the others are compared with.
func kinds() []string { return []string{"TCP", "TCP, TLS 1.3", "wire", "wire, mTLS"} }

// measure runs all, taking turns, and prints the table.
func measure(ctx context.Context, w io.Writer, rounds, total int) error {
	dir, err := os.MkdirTemp("", "transport-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	authority, err := trust.New("bench")
	if err != nil {
		return err
	}
	keys := filepath.Join(dir, "authority")
	if err := authority.WriteFile(keys); err != nil {
		return err
	}
	var senders []sender
	for _, kind := range kinds() {
		s, err := start(ctx, kind, keys)
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		defer s.close()
		senders = append(senders, s)
	}
	load := gauge.Load()
	results := make([]result, len(senders))
	for i := range results {
		results[i].rates = map[int][]float64{}
	}
	for range rounds {
		for _, size := range sizes() {
			for i, s := range senders {
				if err := results[i].round(ctx, s, size, total); err != nil {
					return fmt.Errorf("%s: %w", kinds()[i], err)
				}
			}
		}
	}
	print(w, results, rounds, total, load)
	return nil
}

// result is what was measured of a kind.
type result struct {
	rates       map[int][]float64 // MB/s by size
	objects     float64           // allocated by both processes for each MiB, but for messages
	bytes       float64           // the same, beyond the messages' own
	measurement int
}

// round sends total MiB in messages of size MiB.
func (r *result) round(ctx context.Context, s sender, size, total int) error {
	body := make([]byte, size<<20)
	for i := range body {
		body[i] = byte(i * 7)
	}
	n := max(total/size, 1)
	if err := s.send(ctx, body, 1); err != nil { // what comes first is warming up
		return err
	}
	before, there, err := s.stats(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := s.send(ctx, body, n); err != nil {
		return err
	}
	seconds := time.Since(start).Seconds()
	after, thereAfter, err := s.stats(ctx)
	if err != nil {
		return err
	}
	r.rates[size] = append(r.rates[size], float64(n*len(body))/1e6/seconds)
	mib := float64(n * size)
	r.objects += float64(after.objects-before.objects+thereAfter.objects-there.objects) / mib
	r.bytes += float64(after.bytes-before.bytes+thereAfter.bytes-there.bytes) / mib
	r.measurement++
	return nil
}

// memory is what a process has allocated so far.
type memory struct{ objects, bytes uint64 }

func allocated() memory {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return memory{m.Mallocs, m.TotalAlloc}
}

func print(w io.Writer, results []result, rounds, total int, load string) {
	fmt.Fprintf(w, "%s, %d threads, load %s before; medians of %d rounds of %d MiB\n\n",
		gauge.Processor(), runtime.GOMAXPROCS(0), load, rounds, total)
	head, line := "| one stream, MB/s |", "|---|"
	for _, size := range sizes() {
		head += fmt.Sprintf(" %d MiB | to TCP |", size)
		line += "--:|--:|"
	}
	fmt.Fprintf(w, "%s objects/MiB | bytes/MiB |\n%s--:|--:|\n", head, line)
	for i, r := range results {
		cells := []string{kinds()[i]}
		for _, size := range sizes() {
			m := gauge.Median(r.rates[size])
			cells = append(cells, fmt.Sprintf("%.0f", m),
				fmt.Sprintf("%.2f", m/gauge.Median(results[0].rates[size])))
		}
		n := float64(r.measurement)
		cells = append(cells, fmt.Sprintf("%.0f", r.objects/n), fmt.Sprintf("%.0f", r.bytes/n))
		fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
	}
}
