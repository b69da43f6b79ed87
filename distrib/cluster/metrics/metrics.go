// Package metrics serves a node's counters to Prometheus, when asked to.
//
// What there is to see is read when it is asked for: nothing is counted for it before, and
// nothing is registered for a whole process. It is served by itself, on loopback unless an
// address says otherwise, since it tells who asks, and nobody has to prove who that is, what
// a job does and on which machines.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Kind is what a sample is.
type Kind uint8

// The kinds.
const (
	Counter Kind = iota // only grows
	Gauge               // goes up and down
)

// Label is one of a sample's dimensions.
type Label struct{ Name, Value string }

// Sample is one number. Samples of one name have one kind, help and names of labels.
type Sample struct {
	Name   string // "gomem_sent_bytes_total": a unit, and total for counters
	Help   string // one line
	Kind   Kind
	Labels []Label
	Value  float64
}

// Collector turns samples into what Prometheus takes. It describes nothing beforehand, since
// what there is depends on a job's plan.
type Collector struct{ samples func() []Sample }

// NewCollector returns a collector that asks for samples whenever it is asked.
func NewCollector(samples func() []Sample) *Collector { return &Collector{samples} }

// Describe says nothing: the collector is unchecked.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends all samples; one that is not valid is an error in its place.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	for _, s := range c.samples() {
		out <- metric(&s)
	}
}

var nameOf = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)

func metric(s *Sample) prometheus.Metric {
	var names, values []string
	for _, l := range s.Labels {
		names, values = append(names, l.Name), append(values, l.Value)
	}
	desc := prometheus.NewDesc(s.Name, s.Help, names, nil)
	if !nameOf.MatchString(s.Name) {
		return prometheus.NewInvalidMetric(desc, fmt.Errorf("%q is no name of a metric", s.Name))
	}
	kind := prometheus.CounterValue
	if s.Kind == Gauge {
		kind = prometheus.GaugeValue
	}
	m, err := prometheus.NewConstMetric(desc, kind, s.Value, values...)
	if err != nil {
		return prometheus.NewInvalidMetric(desc, err)
	}
	return m
}

// DefaultAddr is where metrics are served when nothing else is said.
const DefaultAddr = "127.0.0.1:9464"

// Server serves metrics.
type Server struct {
	Addr string // host:port that it listens at
	http *http.Server
	done chan error
}

// Serve serves samples at http://addr/metrics; "" is [DefaultAddr], ":port" is that port of
// loopback, and another host has to be written out.
func Serve(addr string, samples func() []Sample) (*Server, error) {
	l, err := net.Listen("tcp", complete(addr))
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	r := prometheus.NewRegistry()
	r.MustRegister(NewCollector(samples))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(r, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4}))
	s := &Server{Addr: l.Addr().String(), done: make(chan error, 1),
		http: &http.Server{Handler: mux, ReadTimeout: 5 * time.Second,
			WriteTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10}}
	go func() { s.done <- s.http.Serve(l) }()
	return s, nil
}

func complete(addr string) string {
	switch {
	case addr == "":
		return DefaultAddr
	case strings.HasPrefix(addr, ":"):
		return "127.0.0.1" + addr
	}
	return addr
}

// Close ends serving; requests that go on have a second.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
