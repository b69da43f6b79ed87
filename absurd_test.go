package gomem_test

import (
	"context"
	"encoding/json"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/precision"
	"github.com/gomem/gomem/internal/profile"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/internal/workers"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/planner/machine"
)

// absurd are values that nobody means for a field of a kind.
func absurd(k reflect.Kind) []any {
	switch k {
	case reflect.Int, reflect.Int64:
		return []any{math.MaxInt, math.MaxInt - 1, math.MaxInt32, math.MinInt, -1, 1 << 40, 1 << 20}
	case reflect.String:
		return []any{"\x1b[2J", "\x00", strings.Repeat("x", 1<<20), " ", "../../..", "\xff"}
	}
	return nil
}

// TestAbsurdOptions: no value of no option takes the machine's threads or memory, or hangs: it
// is refused in a line that a terminal can show, or the session works.
func TestAbsurdOptions(t *testing.T) {
	m := randgraph.Random(func(int) int { return 0 }, 6)
	target := gomem.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates}
	before := runtime.NumGoroutine()
	fields := reflect.TypeFor[gomem.Options]()
	for i := range fields.NumField() {
		for _, policy := range []planner.Policy{planner.Thesis, planner.Auto} {
			for _, value := range absurd(fields.Field(i).Type.Kind()) {
				o := gomem.Options{Policy: policy}
				field := reflect.ValueOf(&o).Elem().Field(i)
				field.Set(reflect.ValueOf(value).Convert(field.Type()))
				name := fields.Field(i).Name
				s, err := gomem.Compile(context.Background(), m.Graph, o, target)
				if err != nil {
					mustBeShown(t, name, err)
					continue
				}
				if n := runtime.NumGoroutine() - before; n > 2*gomem.MaxThreads {
					t.Errorf("%s %v: %d goroutines", name, value, n)
				}
				if err := s.Close(); err != nil {
					t.Errorf("%s %v: %v", name, value, err)
				}
			}
		}
	}
}

// mustBeShown demands that an error is a line that a terminal can show.
func mustBeShown(t *testing.T, what string, err error) {
	t.Helper()
	said := err.Error()
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	if len(said) > 1000 || !utf8.ValidString(said) || strings.ContainsFunc(said, odd) {
		t.Errorf("%s: the error is %.300q", what, said)
	}
}

// TestThreadsOption: more threads than anybody has are refused by name, with what is allowed.
func TestThreadsOption(t *testing.T) {
	for _, n := range []int{-1, gomem.MaxThreads + 1, math.MaxInt} {
		err := gomem.Options{Threads: n}.Validate()
		if err == nil || !strings.Contains(err.Error(), "threads") ||
			!strings.Contains(err.Error(), "1024") {
			t.Errorf("%d threads: %v", n, err)
		}
	}
	if err := (gomem.Options{Threads: gomem.MaxThreads}).Validate(); err != nil {
		t.Error(err)
	}
}

// TestParsersErrors: what a parser says of its input is a line that a terminal can show, whatever
// the input is.
func TestParsersErrors(t *testing.T) {
	named, err := mesh.ParseMesh("batch:2")
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 1<<20)
	for name, parse := range map[string]func(string) error{
		"mesh":        func(s string) error { _, err := mesh.Parse(s, ""); return err },
		"mesh's name": func(s string) error { _, err := mesh.Parse(s+":2", ""); return err },
		"mesh's size": func(s string) error { _, err := mesh.Parse("batch:"+s, ""); return err },
		"layout":      func(s string) error { _, err := mesh.ParseLayout(s, named); return err },
		"layout's names": func(s string) error {
			_, err := mesh.ParseLayout(s+"=batch", named)
			return err
		},
		"layout's axis": func(s string) error {
			_, err := mesh.ParseLayout("a="+s, named)
			return err
		},
		"layout's leaf": func(s string) error {
			_, err := mesh.ParseLayout("*/"+s+":x=batch", named)
			return err
		},
		"layout twice": func(s string) error {
			_, err := mesh.ParseLayout(s+"=batch,"+s+"=batch", named)
			return err
		},
		"query":       func(s string) error { _, err := profile.ParseQuery(s); return err },
		"query's key": func(s string) error { _, err := profile.ParseQuery(s + "=1"); return err },
		"query's part": func(s string) error {
			_, err := profile.ParseQuery("part=" + s)
			return err
		},
		"query's time": func(s string) error {
			_, err := profile.ParseQuery("time=" + s)
			return err
		},
		"query twice": func(s string) error {
			_, err := profile.ParseQuery("value=" + s + ",value=1")
			return err
		},
		"strategy":  func(s string) error { _, err := partition.Parse(s); return err },
		"precision": func(s string) error { _, err := precision.Parse(s); return err },
		"how":       func(s string) error { _, err := graph.ParseHow(s); return err },
		"how's way": func(s string) error { _, err := graph.ParseHow("mean/" + s); return err },
		"type":      func(s string) error { _, err := graph.ParseType(s); return err },
		"type's axis": func(s string) error {
			_, err := graph.ParseType("f32[" + s + "]")
			return err
		},
		"type's name": func(s string) error {
			_, err := graph.ParseType("f32[" + s + ":-1]")
			return err
		},
		"dtype":  func(s string) error { _, err := graph.ParseDType(s); return err },
		"via":    func(s string) error { _, err := collective.ParseVia(s); return err },
		"filter": func(s string) error { _, err := distrib.ParseFilter(s); return err },
		"filter's x": func(s string) error {
			_, err := distrib.ParseFilter("topk:" + s)
			return err
		},
		"rule":  func(s string) error { _, err := distrib.ParseRule(s); return err },
		"order": func(s string) error { _, err := distrib.ParseOrder(s); return err },
		"scheme": func(s string) error {
			_, err := distrib.ParseScheme(s, distrib.SchemeOptions{})
			return err
		},
		"workers' scheme": func(s string) error {
			_, err := workers.ParseScheme(s, workers.SchemeOptions{})
			return err
		},
		"plan": func(s string) error { _, err := plan.Parse(strings.NewReader(s)); return err },
		"plan's line": func(s string) error {
			_, err := plan.Parse(strings.NewReader("plan x\n" + s + "\n"))
			return err
		},
		"plan's word": func(s string) error {
			_, err := plan.Parse(strings.NewReader("plan x\nparts " + s + "\n"))
			return err
		},
		"plan's name": func(s string) error {
			_, err := plan.Parse(strings.NewReader("plan x\nparts 1 : " + s + "\n"))
			return err
		},
		"profile": func(s string) error { _, err := machine.Parse([]byte(s)); return err },
		"profile's name": func(s string) error {
			_, err := machine.Parse(quoted("name", s))
			return err
		},
		"profile's key": func(s string) error {
			_, err := machine.Parse(quoted(s, "x"))
			return err
		},
		"profile's op": func(s string) error {
			text, _ := json.Marshal(map[string]any{"name": "x",
				"operations": map[string]any{s: map[string]any{"flops_per_second": -1}}})
			_, err := machine.Parse(text)
			return err
		},
		"built-in": func(s string) error { _, err := gomem.Simulated(gomem.Sim + s); return err },
		"size":     func(s string) error { _, err := models.NewMoEConfig(s); return err },
	} {
		for _, text := range []string{"\x1b[2Jx", "x\x00", "\xff", "\u202ex", long, "9" + long,
			"", " "} {
			if err := parse(text); err != nil {
				mustBeShown(t, name, err)
			}
		}
	}
}

// quoted is an object in JSON with one field.
func quoted(key, value string) []byte {
	text, err := json.Marshal(map[string]string{key: value})
	if err != nil {
		panic(err) // of strings: never
	}
	return text
}
