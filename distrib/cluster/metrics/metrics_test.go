package metrics

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// TestServe: what is served is what there is at that time, and nothing else.
func TestServe(t *testing.T) {
	n := 0.0
	s, err := Serve(":0", func() []Sample {
		n++
		return []Sample{
			{"gomem_sent_bytes_total", "Bytes sent.", Counter,
				[]Label{{"to", "1"}, {"class", `up"d`}}, 100 * n},
			{"gomem_sent_bytes_total", "Bytes sent.", Counter,
				[]Label{{"to", "2"}, {"class", "values"}}, 7},
			{"gomem_clock", "Completed steps.", Gauge, nil, n},
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !strings.HasPrefix(s.Addr, "127.0.0.1:") {
		t.Errorf("listens at %s", s.Addr)
	}
	want := `# HELP gomem_clock Completed steps.
# TYPE gomem_clock gauge
gomem_clock 2
# HELP gomem_sent_bytes_total Bytes sent.
# TYPE gomem_sent_bytes_total counter
gomem_sent_bytes_total{class="up\"d",to="1"} 200
gomem_sent_bytes_total{class="values",to="2"} 7
`
	get(t, "http://"+s.Addr+"/metrics")
	if code, body := get(t, "http://"+s.Addr+"/metrics"); code != 200 || body != want {
		t.Errorf("%d\n%s\nwant\n%s", code, body, want)
	}
	if code, _ := get(t, "http://"+s.Addr+"/"); code != 404 {
		t.Errorf("the root answers %d", code)
	}
}

// TestInvalid: a sample that is not one does not hide the others.
func TestInvalid(t *testing.T) {
	s, err := Serve("127.0.0.1:0", func() []Sample {
		return []Sample{
			{"not a name", "", Gauge, nil, 1},
			{"twice", "One.", Gauge, []Label{{"a", "1"}, {"a", "2"}}, 1},
			{"good", "Good.", Gauge, nil, 3},
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, body := get(t, "http://"+s.Addr+"/metrics"); !strings.Contains(body, "good 3") ||
		strings.Contains(body, "twice") {
		t.Errorf("served:\n%s", body)
	}
}

// TestRefused: an address in use, or none at all, is said at once.
func TestRefused(t *testing.T) {
	s, err := Serve(":0", func() []Sample { return nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{s.Addr, "nowhere", "256.0.0.1:1"} {
		if other, err := Serve(addr, nil); err == nil {
			other.Close()
			t.Errorf("%s is served", addr)
		} else if !strings.HasPrefix(err.Error(), "metrics: ") {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
