package plan_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/plan"
)

// newExchanging is a step that exchanges a gradient in place, and an input, which the
// update reads too, by a gate.
func newExchanging() bench {
	g := graph.New()
	x, n := g.Input("x", tensor.Of(graph.F32, 2)), g.Input("n", tensor.Of(graph.F32))
	w := g.Variable("w", tensor.Of(graph.F32, 2), graph.Init{})
	grad := g.Apply(rigid{"grad", 1, 0}, x).Value(0)
	a := ops.Send(grad, "w", graph.How{Via: "ring"})
	b := ops.Send(x, "x", graph.How{Fold: graph.Sum}, ops.Gate{Every: 2, Step: n})
	mean, sum := ops.Await(a), ops.Await(b)
	u := g.Update(rigid{"sgd", 0, 0}, []graph.Value{w}, mean, x)
	return bench{g, []graph.Value{sum}, []graph.NodeID{u.ID}}
}

// exchanging is its plan.
const exchanging = `plan by hand
graph DIGEST
parts 1
space device 72 of 100 align 64
space host 264 of 300 align 64
stream compute0 runs in device
stream in copies host to device
stream out copies device to host
stream host runs in host
stream send copies host to network
stream await copies network to host
slot 0 host+0 8 fixed f32[2] : w
slot 1 host+64 8 0-7 f32[2] : x
slot 2 host+192 4 0-4 f32[] : n
slot 3 device+0 8 0-1 f32[2] : x
slot 4 device+64 8 1-2 f32[2] : grad
slot 5 host+128 8 2-7 f32[2] : grad
slot 6 host+256 8 4-7 f32[2] : send_2
feed #0 1 : x
feed #1 2 : n
variable #2 0 : w
step 0 p0 in #0 copy 3 <- 1 8 feed : x
step 1 p0 compute0 #3 launch grad 4 <- 3 wait 0 : grad
step 2 p0 out #3 copy 5 <- 4 8 gradient wait 1 : grad
step 3 p0 send #4 send 5 8 mean/ring <- 5 wait 2 : send
step 4 p0 send #5 send 6 8 sum <- 1 2 : send_2
step 5 p0 await #6 await 5 8 wait 3 : await
step 6 p0 await #7 await 6 8 wait 4 : await_2
step 7 p0 host #8 launch sgd <- 0 5 1 mutates 1 wait 5 : sgd
fetch 6 f32[2] : await_2
`

// promise is a change of a plan's text that breaks one of its promises, and in which words
// it is refused: every piece of old, between bars, becomes the one of new.
type promise struct{ old, new, want string }

// broken checks each of them, and that every text survives being parsed.
func (b bench) broken(t *testing.T, whole string, list []promise) {
	t.Helper()
	whole = strings.Replace(whole, "DIGEST", b.g.Digest(), 1)
	for _, c := range list {
		text, now := whole, strings.Split(c.new, "|")
		for i, old := range strings.Split(c.old, "|") {
			text = strings.Replace(text, old, now[i], 1)
		}
		text = ended(text)
		p, err := plan.Parse(strings.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", c.new, err)
		}
		var out bytes.Buffer
		if _, err := p.WriteTo(&out); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(text, out.String()); diff != "" {
			t.Errorf("%s: %s", c.new, diff)
		}
		err = b.verify(p)
		if c.want == "" && err != nil || c.want != "" && (err == nil ||
			err.Error() != "plan: "+c.want) {
			t.Errorf("%s\nis refused by %v\nwant            %s", c.new, err, c.want)
		}
	}
}

// TestExchanges: the plan keeps every promise and survives its text; every promise that
// is broken is noticed, in these words.
func TestExchanges(t *testing.T) {
	b := newExchanging()
	b.broken(t, exchanging, []promise{
		{"", "", ""},
		{"send copies host to network", "send copies network to host",
			"step 3 (send): sends on a stream that copies network to host"},
		{"await copies network to host", "await runs in host",
			"step 5 (await): awaits on a stream that runs in host"},
		{"stream await", "stream more copies host to network\nstream await",
			"more: it is the second stream that copies host to network"},
		{"stream await copies network to host", "stream await copies network to device",
			"step 5 (await): awaits on a stream that copies network to device"},
		{"mean/ring", "mean",
			"step 3 (send): sends 1 operands for their mean: the node is send of 1, for their " +
				"mean/ring"},
		{"sum <- 1 2", "sum <- 1",
			"step 4 (send_2): sends 1 operands for their sum: the node is send of 2, for " +
				"their sum"},
		{"send 5 8 mean", "send 5 4 mean", "step 3 (send): sends 4 bytes of f32[2]"},
		{"send 6 8 sum <- 1 2", "send 1 8 sum <- 1 2",
			"step 6 (await_2): awaits send_2 in slot 6, which holds none"},
		{"send 5 8 mean/ring <- 5", "send 0 8 mean/ring <- 5",
			"step 3 (send): writes over the variable of slot 0 (w)"},
		{"sum <- 1 2", "sum <- 5 2", "step 4 (send_2): reads x from slot 5, which holds 8 bytes " +
			"of send from 0"},
		{"await 6 8 wait 4", "await 5 8 wait 4",
			"step 6 (await_2): awaits send_2 in slot 5, which holds await"},
		{"await 6 8", "await 6 4", "step 6 (await_2): awaits 4 bytes of f32[2]"},
		{"await 6 8 wait 4", "await 6 8",
			"step 6 (await_2): does not wait for step 4, which writes slot 6 (send_2)"},
		{"await #6 await 5 8 wait 3", "host #6 launch await 5 <- 5 wait 3",
			"step 5 (await): runs await as an operation: it is an exchange"},
		{"await #6 await 5 8 wait 3 : await", "await #5 await 5 8 wait 3 : send_2",
			"step 5 (send_2): awaits: the node is send"},
		{"await #6 await 5 8 wait 3 : await", "out #4 copy 4 <- 5 8 swap-in wait 3 : send",
			"step 5 (send): slot 5 (grad) is in host memory: the engine needs it in device " +
				"memory"},
		{"device+0 8 0-1|await #6 await 5 8 wait 3 : await",
			"device+0 8 0-5|in #4 copy 3 <- 5 8 swap-in wait 1 3 : send",
			"step 5 (send): copies send, which the network has"},
		{"await #6 await 5 8 wait 3 : await| wait 5 : sgd",
			"host #8 launch sgd <- 0 5 1 mutates 1 wait 3 : sgd| : sgd",
			"step 5 (sgd): reads await from slot 5, which holds 8 bytes of send from 0"},
		{"step 4 p0 send #5 send 6 8 sum <- 1 2 : send_2",
			"step 4 p0 send #4 send 5 8 mean/ring <- 5 : send", "step 4 (send): sends twice"},
	})
}

// TestSendsInOrder: sends are in the graph's order, which all workers have.
func TestSendsInOrder(t *testing.T) {
	b := newExchanging()
	text := strings.Replace(exchanging, "DIGEST", b.g.Digest(), 1)
	const first, second = "send #4 send 5 8 mean/ring <- 5 wait 2 : send\n",
		"send #5 send 6 8 sum <- 1 2 : send_2\n"
	text = strings.Replace(text, first, "X", 1)
	text = strings.Replace(text, second, first, 1)
	text = strings.Replace(text, "X", second, 1)
	text = strings.NewReplacer("8 4-7 f32[2] : send_2", "8 3-7 f32[2] : send_2",
		"await 5 8 wait 3", "await 5 8 wait 4", "await 6 8 wait 4",
		"await 6 8 wait 3").Replace(text)
	p, err := plan.Parse(strings.NewReader(ended(text)))
	if err != nil {
		t.Fatal(err)
	}
	const want = "plan: step 4 (send): sends after send_2, which comes later in the graph"
	if err := b.verify(p); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestHowIsParsed: a way that there is not is an error with its line.
func TestHowIsParsed(t *testing.T) {
	_, err := plan.Parse(strings.NewReader(strings.Replace(exchanging, "mean/ring", "max", 1)))
	if err == nil || !strings.Contains(err.Error(), "line 25") ||
		!strings.Contains(err.Error(), `"max"`) {
		t.Errorf("error is %v", err)
	}
}
