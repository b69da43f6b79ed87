package plan_test

import (
	"math"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
)

// formPromises are about the header, the slots, and the form of the steps.
var formPromises = []broken{
	{
		name:  "another graph",
		edits: []string{"graph sha256:", "graph sha257:"},
		want:  `plan: is for another graph, "sha257:HEX": this one is "sha256:HEX"`,
	},
	{
		name:   "no digest",
		change: func(p *plan.Plan) { p.Digest = "" },
		want:   `plan: is for another graph, "": this one is "sha256:HEX"`,
	},
	{
		name:   "a space",
		change: func(p *plan.Plan) { p.Spaces = p.Spaces[:1] },
		want:   `plan: has 1 spaces: want 2 to 255`,
	},
	{
		name:   "too many spaces",
		change: func(p *plan.Plan) { p.Spaces = append(p.Spaces, make([]plan.Space, 255)...) },
		want:   `plan: has 257 spaces: want 2 to 255`,
	},
	{
		name:  "spaces of one name",
		edits: []string{"stream compute0", "space host 0 of 0 align 1\nstream compute0"},
		want:  `plan: host: two spaces have this name`,
	},
	{
		name:  "no alignment",
		edits: []string{"of 500 align 64\nstream", "of 500 align 0\nstream"},
		want:  `plan: host: slots are aligned to 0 bytes`,
	},
	{
		name:  "another alignment",
		edits: []string{"of 500 align 64\nstream", "of 500 align 48\nstream"},
		want: `plan: k: slot 1 is not aligned: 8 bytes of f32[2] at 64 in host, live from ` +
			`step 0 to 8`,
	},
	{
		name:   "negative window",
		change: func(p *plan.Plan) { p.Window = -1 },
		want:   `plan: has -1 partitions in flight`,
	},
	{
		name:  "more partitions than nodes",
		edits: []string{"parts 3", "parts 11"},
		want:  `plan: has 11 partitions, of a graph of 10 nodes`,
	},
	{
		name:   "negative partitions",
		change: func(p *plan.Plan) { p.Parts = -1 },
		want:   `plan: has -1 partitions, of a graph of 10 nodes`,
	},
	{
		name:   "too many streams",
		change: func(p *plan.Plan) { p.Streams = append(p.Streams, make([]plan.Stream, 253)...) },
		want:   `plan: has 257 streams: want 256 at most`,
	},
	{
		name:   "spaces exchanged",
		change: func(p *plan.Plan) { p.Spaces[0], p.Spaces[1] = p.Spaces[1], p.Spaces[0] },
		want:   `plan: host: space 0 is called device`,
	},
	{
		name:   "no such engine",
		change: func(p *plan.Plan) { p.Streams[1].Engine = space.Copier(2, 0) },
		want:   `plan: in: the stream reaches space 2 of 2`,
	},
	{
		name:   "streams of one name",
		change: func(p *plan.Plan) { p.Streams[2].Name = "in" },
		want:   `plan: in: two streams have this name`,
	},
	{
		name:   "no such space",
		change: func(p *plan.Plan) { p.Slots[3].Space = 2 },
		want: `plan: x: slot 3 is in no space: 8 bytes of f32[2] at 0 in disk, live from ` +
			`step 0 to 3`,
	},
	{
		name:   "negative address",
		change: func(p *plan.Plan) { p.Slots[3].Off = -64 },
		want: `plan: x: slot 3 is out of range: 8 bytes of f32[2] at -64 in device, live ` +
			`from step 0 to 3`,
	},
	{
		name:   "negative size",
		change: func(p *plan.Plan) { p.Slots[3].Bytes = -8 },
		want: `plan: x: slot 3 is out of range: -8 bytes of f32[2] at 0 in device, live from ` +
			`step 0 to 3`,
	},
	{
		name:   "address past all",
		change: func(p *plan.Plan) { p.Slots[3].Off = math.MaxInt64 - 63 },
		want:   `plan: device: the slots reach 9223372036854775752 bytes, the header says 400`,
	},
	{
		name:   "end past all numbers",
		change: func(p *plan.Plan) { p.Slots[8].Off = math.MaxInt64 - 63 },
		want: `plan: scratch of mix: slot 8 is out of range: 80 bytes of u8[80] at ` +
			`9223372036854775744 in device, live from step 3 to 3`,
	},
	{
		name:  "shifted by 1",
		edits: []string{"device+64 ", "device+65 "},
		want: `plan: w: slot 4 is not aligned: 8 bytes of u8[8] at 65 in device, live from ` +
			`step 1 to 3`,
	},
	{
		name: "an odd address",
		edits: []string{
			"device 400 of 500 align 64", "device 400 of 500 align 1",
			"device+256 ", "device+257 ",
		},
		want: `plan: step 3 (mix): result 1 is not aligned: f32[2] at 7 of 257`,
	},
	{
		name:  "shifted by 3",
		edits: []string{"host+64 ", "host+67 "},
		want: `plan: k: slot 1 is not aligned: 8 bytes of f32[2] at 67 in host, live from ` +
			`step 0 to 8`,
	},
	{
		name:  "larger than its type",
		edits: []string{"device+64 8", "device+64 12"},
		want: `plan: w: slot 4 is not as large as its type: 12 bytes of u8[8] at 64 in ` +
			`device, live from step 1 to 3`,
	},
	{
		name:   "no type",
		change: func(p *plan.Plan) { p.Slots[3].Type = graph.Type{} },
		want: `plan: x: slot 3 is not as large as its type: 8 bytes of invalid[] at 0 in ` +
			`device, live from step 0 to 3`,
	},
	{
		name:  "dies before it is born",
		edits: []string{"2-3 f32[2] : k", "3-2 f32[2] : k"},
		want: `plan: k: slot 5 has no life: 8 bytes of f32[2] at 128 in device, live from ` +
			`step 3 to 2`,
	},
	{
		name:  "lives after the end",
		edits: []string{"6-8 f32[2] : add", "6-9 f32[2] : add"},
		want: `plan: add: slot 11 has no life: 8 bytes of f32[2] at 128 in host, live from ` +
			`step 6 to 9`,
	},
	{
		name:   "negative birth",
		change: func(p *plan.Plan) { p.Slots[3].From = -1 },
		want: `plan: x: slot 3 has no life: 8 bytes of f32[2] at 0 in device, live from step ` +
			`-1 to 3`,
	},
	{
		name:   "fixed for a while",
		change: func(p *plan.Plan) { p.Slots[0].To = 3 },
		want: `plan: w: slot 0 is fixed and not live throughout: 16 bytes of f32[2 2] at 0 ` +
			`in host, live from step 0 to 3`,
	},
	{
		name:   "fixed from later on",
		change: func(p *plan.Plan) { p.Slots[0].From = 1 },
		want: `plan: w: slot 0 is fixed and not live throughout: 16 bytes of f32[2 2] at 0 ` +
			`in host, live from step 1 to 8`,
	},
	{
		name:   "no such node",
		change: func(p *plan.Plan) { p.Steps[2].Node = 10 },
		want:   `plan: step 2 (k): node 10, stream 1 or partition 0 is out of range`,
	},
	{
		name:   "negative node",
		change: func(p *plan.Plan) { p.Steps[2].Node = -1 },
		want:   `plan: step 2 (k): node -1, stream 1 or partition 0 is out of range`,
	},
	{
		name:   "no such stream",
		change: func(p *plan.Plan) { p.Steps[2].Stream = 4 },
		want:   `plan: step 2 (k): node 2, stream 4 or partition 0 is out of range`,
	},
	{
		name:  "no such partition",
		edits: []string{"step 8 p2", "step 8 p3"},
		want:  `plan: step 8 (sgd): node 7, stream 3 or partition 3 is out of range`,
	},
	{
		name:   "negative partition",
		change: func(p *plan.Plan) { p.Steps[0].Part = -1 },
		want:   `plan: step 0 (x): node 0, stream 1 or partition -1 is out of range`,
	},
	{
		name:  "another name",
		edits: []string{"wait 2 : mix", "wait 2 : max"},
		want:  `plan: step 3 (max): is of node 4, which is called mix`,
	},
	{
		name:  "waits for itself",
		edits: []string{"wait 5 : add", "wait 6 : add"},
		want:  `plan: step 6 (add): waits for step 6, which is not earlier`,
	},
	{
		name:   "waits for nobody",
		change: func(p *plan.Plan) { p.Steps[6].Wait = []int{-1} },
		want:   `plan: step 6 (add): waits for step -1, which is not earlier`,
	},
	{
		name:  "waits twice",
		edits: []string{"wait 5 : add", "wait 5 5 : add"},
		want:  `plan: step 6 (add): waits for step 5 after step 5`,
	},
	{
		name:  "waits out of order",
		edits: []string{"wait 6 : sgd", "wait 6 2 : sgd"},
		want:  `plan: step 8 (sgd): waits for step 2 after step 6`,
	},
	{
		name:  "waits for its own stream",
		edits: []string{"scratch 9 : relu", "scratch 9 wait 3 : relu"},
		want:  `plan: step 4 (relu): waits for step 3 of its own stream`,
	},
	{
		name:  "by a library",
		edits: []string{"scratch 9 : relu", "scratch 9 by cudnn : relu"},
		want: `plan: step 4 (relu): is computed by cudnn: the node is by the engine's own ` +
			`kernels`,
	},
	{
		name:  "copy on compute",
		edits: []string{"p0 in #0", "p0 compute0 #0"},
		want:  `plan: step 0 (x): copies on a stream that runs in device`,
	},
	{
		name:  "launch on a copy engine",
		edits: []string{"p1 compute0 #5", "p1 out #5"},
		want: `plan: step 4 (relu): runs an operation on a stream that copies device ` +
			`to host`,
	},
	{
		name:   "does nothing",
		change: func(p *plan.Plan) { p.Steps[4].Do = nil },
		want:   `plan: step 4 (relu): does nothing`,
	},
	{
		name:  "partitions go back",
		edits: []string{"step 4 p1", "step 4 p2", "step 5 p2", "step 5 p1"},
		want:  `plan: step 5 (add): is of partition 1 after a step of partition 2`,
	},
	{
		name:   "no such reason",
		change: func(p *plan.Plan) { change(p, 0, func(c *plan.Copy) { c.Why = 7 }) },
		want:   `plan: step 0 (x): copies for reason 7, idle 0`,
	},
	{
		name:   "negative idleness",
		change: func(p *plan.Plan) { change(p, 0, func(c *plan.Copy) { c.Idle = -1 }) },
		want:   `plan: step 0 (x): copies for reason 3, idle -1`,
	},
	{
		name:  "kernel on host memory",
		edits: []string{"mix 6 7 <- 3 4 5", "mix 6 7 <- 2 4 5"},
		want: `plan: step 3 (mix): slot 2 (x) is in host memory: the engine needs it in ` +
			`device memory`,
	},
	{
		name:  "kernel writes host memory",
		edits: []string{"add 10 <- 6 7", "add 11 <- 6 7"},
		want: `plan: step 5 (add): slot 11 (add) is in host memory: the engine needs it in ` +
			`device memory`,
	},
	{
		name:  "update on the device",
		edits: []string{"p2 host #7", "p2 compute0 #7", " wait 6 : sgd", " : sgd"},
		want: `plan: step 8 (sgd): slot 0 (w) is in host memory: the engine needs it in ` +
			`device memory`,
	},
	{
		name:  "copy backwards",
		edits: []string{"copy 11 <- 10", "copy 10 <- 11"},
		want: `plan: step 6 (add): slot 11 (add) is in host memory: the engine needs it in ` +
			`device memory`,
	},
	{
		name:  "copy from the wrong side",
		edits: []string{"copy 3 <- 2", "copy 3 <- 5"},
		want: `plan: step 0 (x): slot 5 (k) is in device memory: the engine needs it in host ` +
			`memory`,
	},
	{
		name:  "slot on the other side",
		edits: []string{"slot 3 device", "slot 3 host"},
		want: `plan: step 0 (x): slot 3 (x) is in host memory: the engine needs it in device ` +
			`memory`,
	},
	{
		name:  "another node's operation",
		edits: []string{"launch relu 6", "launch gelu 6"},
		want: `plan: step 4 (relu): is gelu of 1 operands, 0 of them written, and 1 results: ` +
			`the node is relu of 1, 0 and 1`,
	},
	{
		name:  "another number of operands",
		edits: []string{"relu 6 <- 6", "relu 6 <- 6 6"},
		want: `plan: step 4 (relu): is relu of 2 operands, 0 of them written, and 1 results: ` +
			`the node is relu of 1, 0 and 1`,
	},
	{
		name:  "another number of results",
		edits: []string{"relu 6 <- 6", "relu 6 7 <- 6"},
		want: `plan: step 4 (relu): is relu of 1 operands, 0 of them written, and 2 results: ` +
			`the node is relu of 1, 0 and 1`,
	},
	{
		name:  "mutates nothing",
		edits: []string{" mutates 1", ""},
		want: `plan: step 8 (sgd): is sgd of 2 operands, 0 of them written, and 0 results: ` +
			`the node is sgd of 2, 1 and 0`,
	},
	{
		name: "runs a view",
		edits: []string{
			"#5 launch relu 6 <- 6 scratch 9 : relu", "#3 launch halves 6 7 <- 6 : halves",
		},
		want: `plan: step 4 (halves): is halves of 1 operands, 0 of them written, and 2 ` +
			`results: the node is halves of 1, 0 and 2`,
	},
	{
		name:  "runs a leaf",
		edits: []string{"#5 launch relu 6 <- 6 scratch 9 : relu", "#1 launch variable 6 <- : w"},
		want: `plan: step 4 (w): is variable of 0 operands, 0 of them written, and 1 ` +
			`results: the node is variable of 0, 0 and 1`,
	},
	{
		name:  "operand at an odd address",
		edits: []string{"mix 6 7 <- 3 4 5", "mix 6 7 <- 3 8+1 5"},
		want:  `plan: step 3 (mix): operand 1 is not aligned: f32[2] at 8+1 of 320`,
	},
	{
		name:  "scratch that is not used",
		edits: []string{"add 10 <- 6 7 :", "add 10 <- 6 7 scratch 9 :"},
		want:  `plan: step 5 (add): has scratch that the operation does not use`,
	},
	{
		name:  "no scratch",
		edits: []string{" scratch 8", ""},
		want:  `plan: step 3 (mix): slot -1 does not exist`,
	},
	{
		name:  "scratch too small",
		edits: []string{"u8[80]", "u8[79]", "320 80", "320 79"},
		want:  `plan: step 3 (mix): 80 bytes at 0 are outside slot 8 of 79 bytes`,
	},
	{
		name: "scratch over a variable",
		edits: []string{
			"scratch 8", "scratch 1",
			"slot 1 host+64 8 fixed f32[2]", "slot 1 device+448 80 fixed f32[20]",
			"in #2 copy 5 <- 1 8 stage : k", "in #0 copy 5 <- 2 8 feed : x",
			"8 0-0 f32[2] : x", "8 0-2 f32[2] : x",
		},
		want: `plan: step 3 (mix): writes over the variable of slot 1 (k)`,
	},
	{
		name:  "no such slot",
		edits: []string{"copy 3 <- 2", "copy 3 <- 13"},
		want:  `plan: step 0 (x): slot 13 does not exist`,
	},
	{
		name:   "negative slot",
		change: func(p *plan.Plan) { change(p, 0, func(c *plan.Copy) { c.Src.Slot = -1 }) },
		want:   `plan: step 0 (x): slot -1 does not exist`,
	},
	{
		name:  "outside the slot",
		edits: []string{"copy 4 <- 0+8 8", "copy 4 <- 0+9 8"},
		want:  `plan: step 1 (w): 8 bytes at 9 are outside slot 0 of 16 bytes`,
	},
	{
		name:  "past all numbers",
		edits: []string{"copy 4 <- 0+8 8", "copy 4 <- 0+9223372036854775807 8"},
		want:  `plan: step 1 (w): 8 bytes at 9223372036854775807 are outside slot 0 of 16 bytes`,
	},
	{
		name:   "negative offset",
		change: func(p *plan.Plan) { change(p, 1, func(c *plan.Copy) { c.Src.Off = -8 }) },
		want:   `plan: step 1 (w): 8 bytes at -8 are outside slot 0 of 16 bytes`,
	},
	{
		name:   "negative length",
		change: func(p *plan.Plan) { change(p, 1, func(c *plan.Copy) { c.Bytes = -8 }) },
		want:   `plan: step 1 (w): -8 bytes at 8 are outside slot 0 of 16 bytes`,
	},
	{
		name:  "read after its life",
		edits: []string{"3-5 f32[2] : mix:1", "3-4 f32[2] : mix:1"},
		want:  `plan: step 5 (add): slot 7 (mix:1) is live from step 3 to 4 only`,
	},
	{
		name:  "written before its life",
		edits: []string{"2-3 f32[2] : k", "3-3 f32[2] : k"},
		want:  `plan: step 2 (k): slot 5 (k) is live from step 3 to 3 only`,
	},
	{
		name:  "result over a variable",
		edits: []string{"copy 3 <- 2 8", "copy 0 <- 2 8", "slot 0 host", "slot 0 device"},
		want:  `plan: step 0 (x): writes over the variable of slot 0 (w)`,
	},
	{
		name:  "kernel over a variable",
		edits: []string{"norm 12 <- 0", "norm 0 <- 0"},
		want:  `plan: step 7 (norm): writes over the variable of slot 0 (w)`,
	},
	{
		name:  "into the middle",
		edits: []string{"copy 11 <- 10 8", "copy 11+4 <- 10 4"},
		want:  `plan: step 6 (add): writes 4 bytes at 4 of slot 11 of 8 bytes`,
	},
	{
		name:  "half of a slot",
		edits: []string{"copy 11 <- 10 8", "copy 11 <- 10 4"},
		want:  `plan: step 6 (add): writes 4 bytes at 0 of slot 11 of 8 bytes`,
	},
}

// TestNarrow: a plan whose addresses are less aligned than what computes the graph needs is
// refused.
func TestNarrow(t *testing.T) {
	for align, want := range map[space.Align]string{
		space.Line: "",
		space.Wide: "plan: device: slots are aligned to 64 bytes, and what computes the graph " +
			"needs 256",
	} {
		b := newBench()
		b.g.SetDevice(graph.Device{Align: align})
		if err := b.verify(b.plan(t)); want == "" && err != nil || want != "" && (err == nil ||
			err.Error() != want) {
			t.Errorf("a graph for %d bytes: %v", align, err)
		}
	}
}
