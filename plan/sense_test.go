package plan_test

import (
	"slices"

	"github.com/gomem/gomem/plan"
)

// sensePromises are about leaves, peaks, order, contents and fetches.
var sensePromises = []broken{
	{
		name:  "a variable without a slot",
		edits: []string{"variable #1 0 : w\n", ""},
		want:  `plan: w: the variable has no slot, or not in the graph's order`,
	},
	{
		name: "bindings out of order",
		edits: []string{
			"variable #1 0 : w\nvariable #2 1 : k", "variable #2 1 : k\nvariable #1 0 : w",
		},
		want: `plan: w: the variable has no slot, or not in the graph's order`,
	},
	{
		name:  "an input without a slot",
		edits: []string{"feed #0 2 : x\n", ""},
		want:  `plan: x: the input has no slot, or not in the graph's order`,
	},
	{
		name:  "a variable in two slots",
		edits: []string{"variable #2", "variable #1 0 : w\nvariable #2"},
		want:  `plan: k: the constant has no slot, or not in the graph's order`,
	},
	{
		name:  "one too many",
		edits: []string{"1 : k\nstep 0", "1 : k\nvariable #2 1 : k\nstep 0"},
		want:  `plan: k: node 2 is bound, but is no leaf that needs a slot, or is bound twice`,
	},
	{
		name:  "fed although it is none",
		edits: []string{"feed #0 2 : x", "feed #0 2 : x\nfeed #1 0 : w"},
		want:  `plan: w: node 1 is bound, but is no leaf that needs a slot, or is bound twice`,
	},
	{
		name:  "names exchanged",
		edits: []string{"#1 0 : w", "#1 0 : k", "#2 1 : k", "#2 1 : w"},
		want:  `plan: k: is the name of a slot of w`,
	},
	{
		name:  "bound to no slot",
		edits: []string{"#1 0 : w", "#1 13 : w"},
		want:  `plan: w: slot 13 does not exist`,
	},
	{
		name:   "bound to a negative slot",
		change: func(p *plan.Plan) { p.Variables[0].Slot = -1 },
		want:   `plan: w: slot -1 does not exist`,
	},
	{
		name:  "slots exchanged",
		edits: []string{"#1 0 : w", "#1 1 : w", "#2 1 : k", "#2 0 : k"},
		want:  `plan: w: is f32[2 2], its slot 1 is for k, f32[2]`,
	},
	{
		name:  "a slot of another type",
		edits: []string{"slot 1 host+64 8 fixed f32[2]", "slot 1 host+64 8 fixed i32[2]"},
		want:  `plan: k: is f32[2], its slot 1 is for k, i32[2]`,
	},
	{
		name:  "a larger slot",
		edits: []string{"slot 1 host+64 8 fixed f32[2]", "slot 1 host+64 12 fixed f32[3]"},
		want:  `plan: k: is f32[2], its slot 1 is for k, f32[3]`,
	},
	{
		name:  "a variable that is not fixed",
		edits: []string{"8 fixed f32[2] : k", "8 0-8 f32[2] : k"},
		want: `plan: k: slot 1 of the constant is not there when the step starts, or is ` +
			`there between steps`,
	},
	{
		name:  "an input that is fixed",
		edits: []string{"8 0-0 f32[2] : x", "8 fixed f32[2] : x"},
		want: `plan: x: slot 2 of the input is not there when the step starts, or is there ` +
			`between steps`,
	},
	{
		name: "an input that comes later",
		edits: []string{
			"8 0-0 f32[2] : x", "8 1-1 f32[2] : x",
			"slot 3 device+0 8 0", "slot 3 device+0 8 1",
			"step 0 p0 in #0 copy 3 <- 2 8 feed : x", "step 0 p0 in #1 copy 4 <- 0+8 8 stage : w",
			"step 1 p0 in #1 copy 4 <- 0+8 8 stage : w", "step 1 p0 in #0 copy 3 <- 2 8 feed : x",
			"8 1-3 u8", "8 0-3 u8",
		},
		want: `plan: x: slot 2 of the input is not there when the step starts, or is there ` +
			`between steps`,
	},
	{
		name: "an input on the device",
		edits: []string{
			"slot 2 host+128", "slot 2 device+448",
			"in #0 copy 3 <- 2", "out #0 copy 11 <- 2",
			"8 6-8 f32", "8 0-8 f32",
			"slot 3 device+0 8 0-3", "slot 3 device+0 8 3-3",
		},
		want: `plan: x: the input is in device memory`,
	},
	{
		name:  "a slot for nothing",
		edits: []string{"feed #0", "slot 13 device+384 4 0-0 u8[4] : y\nfeed #0"},
		want:  `plan: y: slot 13 is not used`,
	},
	{
		name: "a fixed slot for nothing",
		edits: []string{
			"feed #0", "slot 13 host+256 16 fixed f32[2 2] : w\nfeed #0",
			"<- 0+8", "<- 13+8",
		},
		want: `plan: 1 fixed slots are no variable's`,
	},
	{
		name:  "a peak too high",
		edits: []string{"device 400", "device 401"},
		want:  `plan: device: the slots reach 400 bytes, the header says 401`,
	},
	{
		name:  "a peak too low",
		edits: []string{"host 208", "host 207"},
		want:  `plan: host: the slots reach 208 bytes, the header says 207`,
	},
	{
		name:  "over budget",
		edits: []string{"device 400 of 500", "device 400 of 399"},
		want:  `plan: device: needs 400 bytes of a budget of 399`,
	},
	{
		name:  "three partitions in flight",
		edits: []string{"8 wait 2 : mix", "8 : mix"},
		want: `plan: step 5 (add): of partition 2 may start before partition 0 is done on ` +
			`stream in`,
	},
	{
		name:  "two partitions in flight",
		edits: []string{"window 2", "window 1", "8 wait 2 : mix", "8 : mix"},
		want: `plan: step 4 (relu): of partition 1 may start before partition 0 is done on ` +
			`stream in`,
	},
	{
		name:  "a value from nowhere",
		edits: []string{"add 10 <- 6 7", "add 10 <- 7 7"},
		want:  `plan: step 5 (add): reads relu from slot 7, which holds 8 bytes of mix:1 from 0`,
	},
	{
		name:  "the other half",
		edits: []string{"copy 4 <- 0+8", "copy 4 <- 0"},
		want:  `plan: step 3 (mix): reads halves:1 from slot 4, which holds 8 bytes of w from 0`,
	},
	{
		name:  "operands exchanged",
		edits: []string{"mix 6 7 <- 3 4 5", "mix 6 7 <- 3 5 4"},
		want:  `plan: step 3 (mix): reads halves:1 from slot 5, which holds 8 bytes of k from 0`,
	},
	{
		name:  "results exchanged",
		edits: []string{"mix 6 7 <-", "mix 7 6 <-"},
		want: `plan: step 3 (mix): slot 7 says that it holds mix:1, f32[2]: it is 8 bytes of ` +
			`mix, f32[2]`,
	},
	{
		name:  "copies undefined bytes",
		edits: []string{"copy 11 <- 10", "copy 11 <- 8+8", "3-3 u8[80]", "3-6 u8[80]"},
		want:  `plan: step 6 (add): copies undefined bytes of slot 8`,
	},
	{
		name: "copied for another node",
		edits: []string{
			"out #6 copy 11 <- 10 8 gradient wait 5 : add",
			"out #5 copy 11 <- 10 8 gradient wait 5 : relu",
		},
		want: `plan: step 6 (relu): copies add as gradient`,
	},
	{
		name:  "fed although a constant",
		edits: []string{"copy 5 <- 1 8 stage", "copy 5 <- 1 8 feed"},
		want:  `plan: step 2 (k): copies k as feed`,
	},
	{
		name:  "staged although an input",
		edits: []string{"2 8 feed", "2 8 stage"},
		want:  `plan: step 0 (x): copies x as stage`,
	},
	{
		name:  "swapped in although an input",
		edits: []string{"2 8 feed", "2 8 swap-in"},
		want:  `plan: step 0 (x): copies x as swap-in`,
	},
	{
		name:  "staged outwards",
		edits: []string{"gradient", "stage"},
		want:  `plan: step 6 (add): copies add as stage`,
	},
	{
		name:  "fed outwards",
		edits: []string{"gradient", "feed"},
		want:  `plan: step 6 (add): copies add as feed`,
	},
	{
		name:  "swapped in outwards",
		edits: []string{"gradient", "swap-in"},
		want:  `plan: step 6 (add): copies add as swap-in`,
	},
	{
		name:  "fetched inwards",
		edits: []string{"copy 5 <- 1 8 stage", "copy 5 <- 1 8 fetch"},
		want:  `plan: step 2 (k): copies k as fetch`,
	},
	{
		name:  "a slot with another's name",
		edits: []string{"f32[2] : mix:1", "f32[2] : mix:2"},
		want: `plan: step 3 (mix): slot 7 says that it holds mix:2, f32[2]: it is 8 bytes of ` +
			`mix:1, f32[2]`,
	},
	{
		name:  "a slot with another's type",
		edits: []string{"3-5 f32[2] : mix:1", "3-5 i32[2] : mix:1"},
		want: `plan: step 3 (mix): slot 7 says that it holds mix:1, i32[2]: it is 8 bytes of ` +
			`mix:1, f32[2]`,
	},
	{
		name:  "a staged slot's name",
		edits: []string{"u8[8] : w", "u8[8] : k"},
		want:  `plan: step 1 (w): slot 4 says that it holds k, u8[8]: it is 8 bytes of w, f32[2 2]`,
	},
	{
		name:  "scratch with a value's name",
		edits: []string{"scratch of mix", "mix"},
		want:  `plan: step 3 (mix): slot 8 says that it holds mix, u8[80]: it is scratch`,
	},
	{
		name:  "scratch of another",
		edits: []string{"scratch of mix", "scratch of max"},
		want: `plan: step 3 (mix): slot 8 says that it holds scratch of max, u8[80]: ` +
			`it is scratch`,
	},
	{
		name:  "scratch as floats",
		edits: []string{"3-3 u8[80]", "3-3 f32[20]"},
		want: `plan: step 3 (mix): slot 8 says that it holds scratch of mix, f32[20]: it is ` +
			`scratch`,
	},
	{
		name: "recomputed from what is gone",
		edits: []string{
			"#6 launch add 10 <- 6 7 : add", "#5 launch relu 6 <- 6 scratch 9 : relu",
			"4-4 u8", "4-5 u8",
		},
		want: `plan: step 5 (relu): reads mix from slot 6, which holds 8 bytes of relu from 0`,
	},
	{
		name: "updates twice",
		edits: []string{
			"6-8", "6-9", "7-8", "7-9",
			"fetch 11 f32", "step 9 p2 host #7 launch sgd <- 0 11 mutates 1 : sgd\nfetch 11 f32",
		},
		want: `plan: step 9 (sgd): runs an update twice`,
	},
	{
		name: "recomputed after an update",
		edits: slices.Concat(again, []string{
			"1-9 u8[8] : w", "1-3 u8[8] : w",
			"slot 13 device+192 8 9-9", "slot 13 device+192 8 10-10",
			"slot 14 device+256 8 9-9", "slot 14 device+256 8 10-10",
			"slot 15 device+320 80 9-9 u8[80] : scratch of mix",
			"slot 15 device+320 80 10-10 u8[80] : scratch of mix\n" +
				"slot 16 device+64 8 9-10 u8[8] : w",
			"0-9", "0-10", "2-9", "2-10", "6-9", "6-10", "7-9", "7-10",
			"step 9 p2 compute0 #4 launch mix 13 14 <- 3 4 5 scratch 15 wait 6 : mix",
			"step 9 p2 in #1 copy 16 <- 0+8 8 stage wait 5 8 : w\n" +
				"step 10 p2 compute0 #4 launch mix 13 14 <- 3 16 5 scratch 15 wait 9 : mix",
		}),
		want: `plan: step 10 (mix): reads halves:1 after its update`,
	},
	{
		name:  "recomputed over what is read",
		edits: slices.Concat(again, []string{"scratch 15 wait 6", "scratch 15"}),
		want: `plan: step 9 (mix): overwrites slot 10 (add) without waiting for its reader, ` +
			`step 6`,
	},
	{
		name:  "recomputed from other operands",
		edits: slices.Concat(again, []string{"mix 13 14 <- 3 4 5", "mix 13 14 <- 5 4 3"}),
		want:  `plan: step 9 (mix): reads x from slot 5, which holds 8 bytes of k from 0`,
	},
	{
		name:  "results in one slot",
		edits: []string{"mix 6 7 <-", "mix 7 7 <-", "f32[2] : mix:1", "f32[2] : mix"},
		want:  `plan: step 3 (mix): writes results 0 and 1 into slot 7`,
	},
	{
		name:  "over an operand that is needed",
		edits: []string{"mix 6 7 <- 3", "mix 3 7 <- 3"},
		want:  `plan: step 3 (mix): writes result 0 over operand 0`,
	},
	{
		name:  "result 1 over an operand",
		edits: []string{"mix 6 7 <- 3", "mix 6 3 <- 3"},
		want:  `plan: step 3 (mix): writes result 1 over operand 0`,
	},
	{
		name:  "over operand 1",
		edits: []string{"add 10 <- 6 7", "add 7 <- 6 7"},
		want:  `plan: step 5 (add): writes result 0 over operand 1`,
	},
	{
		name:  "a fetch is missing",
		edits: []string{"fetch 12 f32[2 2] : norm\n", ""},
		want:  `plan: has 2 fetches: want 3`,
	},
	{
		name:  "another fetch",
		edits: []string{"halves_2:1", "halves_2"},
		want:  `plan: halves_2: fetch 1 is f32[1]: want halves_2:1, f32[1]`,
	},
	{
		name:  "another type is fetched",
		edits: []string{"fetch 11+4 f32[1]", "fetch 11+4 i32[1]"},
		want:  `plan: halves_2:1: fetch 1 is i32[1]: want halves_2:1, f32[1]`,
	},
	{
		name:  "fetched from no slot",
		edits: []string{"fetch 11 f32", "fetch 13 f32"},
		want:  `plan: add: fetch 0 has no slot`,
	},
	{
		name:   "fetched from a negative slot",
		change: func(p *plan.Plan) { p.Fetches[0].Ref.Slot = -1 },
		want:   `plan: add: fetch 0 has no slot`,
	},
	{
		name:  "fetched from the device",
		edits: []string{"fetch 11 f32", "fetch 10 f32"},
		want:  `plan: add: fetch 0 is not in host memory when the step ends`,
	},
	{
		name:  "fetched after its life",
		edits: []string{"fetch 11 f32", "fetch 2 f32"},
		want:  `plan: add: fetch 0 is not in host memory when the step ends`,
	},
	{
		name:  "fetched from a variable",
		edits: []string{"fetch 11 f32", "fetch 1 f32"},
		want:  `plan: add: fetch 0 is of slot 1, which holds 8 bytes of k from 0`,
	},
	{
		name:  "fetched past the end",
		edits: []string{"fetch 11+4", "fetch 11+8"},
		want:  `plan: halves_2:1: fetch 1 is of slot 11, which holds 8 bytes of add from 0`,
	},
	{
		name:   "fetched from before",
		change: func(p *plan.Plan) { p.Fetches[1].Ref.Off = -4 },
		want:   `plan: halves_2:1: fetch 1 is of slot 11, which holds 8 bytes of add from 0`,
	},
	{
		name:  "fetched from elsewhere",
		edits: []string{"fetch 11+4", "fetch 11"},
		want:  `plan: halves_2:1: fetch 1 is of slot 11, which holds 8 bytes of add from 0`,
	},
	{
		name:  "over a live slot",
		edits: []string{"slot 5 device+128", "slot 5 device+64"},
		want:  `plan: k: slot 5 overlaps slot 4 (w) at step 2`,
	},
	{
		name:  "over a variable",
		edits: []string{"slot 2 host+128", "slot 2 host+64"},
		want:  `plan: x: slot 2 overlaps slot 1 (k) at step 0`,
	},
	{
		name:  "over part of a live slot",
		edits: []string{"slot 8 device+320", "slot 8 device+192", "device 400", "device 272"},
		want:  `plan: scratch of mix: slot 8 overlaps slot 6 (mix) at step 3`,
	},
	{
		name:  "variables at one address",
		edits: []string{"slot 1 host+64", "slot 1 host+0"},
		want:  `plan: k: slot 1 overlaps slot 0 (w) at step 0`,
	},
	{
		name:  "reads what is not there yet",
		edits: []string{"wait 5 : add", ": add"},
		want: `plan: step 6 (add): of partition 2 may start before partition 0 is done on ` +
			`stream compute0`,
	},
	{
		name:  "over live slots",
		edits: []string{"slot 8 device+320", "slot 8 device+128", "device 400", "device 264"},
		want:  `plan: scratch of mix: slot 8 overlaps slot 5 (k) at step 3`,
	},
	{
		name:  "result into scratch",
		edits: []string{"relu 6 <- 6 scratch 9", "relu 9 <- 6 scratch 9"},
		want:  `plan: step 4 (relu): writes result 0 into its scratch`,
	},
	{
		name:  "operand as scratch",
		edits: []string{"relu 6 <- 6 scratch 9", "relu 9 <- 6 scratch 6"},
		want:  `plan: step 4 (relu): has operand 0 as scratch`,
	},
	{
		name: "never written back",
		edits: slices.Concat(back, []string{
			"step 9 p2 out #1 copy 0 <- 4 16 write-back wait 7 8 : w\n", "",
			"1-9", "1-8", "6-9", "6-8", "7-9", "7-8",
		}),
		want: `plan: w: slot 0 has the variable from before its update when the step ends`,
	},
	{
		name: "written back too early",
		edits: slices.Concat(back, []string{
			"step 8 p2 compute0 #7 launch sgd <- 4 10 mutates 1 wait 6 : sgd\n", "",
			"step 9 p2 out #1 copy 0 <- 4 16 write-back wait 7 8 : w",
			"step 8 p2 out #1 copy 0 <- 4 16 write-back wait 7 : w\n" +
				"step 9 p2 compute0 #7 launch sgd <- 4 10 mutates 1 wait 6 : sgd",
			"5-8", "5-9",
		}),
		want: `plan: step 8 (w): writes w back before its update`,
	},
	{
		name: "read after it is written back",
		edits: slices.Concat(back, []string{
			"step 7 p2 host #9 launch norm 12 <- 0 wait 5 : norm\n", "",
			"step 8 p2 compute0 #7", "step 7 p2 compute0 #7",
			"step 9 p2 out #1 copy 0 <- 4 16 write-back wait 7 8 : w",
			"step 8 p2 out #1 copy 0 <- 4 16 write-back wait 7 : w\n" +
				"step 9 p2 host #9 launch norm 12 <- 0 wait 8 : norm",
		}),
		want: `plan: step 9 (norm): reads w after its update`,
	},
	{
		name: "read where it was updated",
		edits: slices.Concat(back, []string{
			"7-9 f32[2 2] : norm", "9-9 f32[2 2] : norm",
			"step 7 p2 host #9 launch norm 12 <- 0 wait 5 : norm\n", "",
			"step 8 p2 compute0 #7", "step 7 p2 compute0 #7",
			"step 9 p2 out #1 copy 0 <- 4 16 write-back wait 7 8 : w",
			"step 8 p2 compute0 #9 launch norm 13 <- 4 : norm\n" +
				"step 9 p2 out #9 copy 12 <- 13 16 fetch wait 8 : norm",
			"feed #0", "slot 13 device+64 16 8-9 f32[2 2] : norm\nfeed #0",
		}),
		want: `plan: step 8 (norm): reads w after its update`,
	},
	{
		name:  "half of it written back",
		edits: slices.Concat(back, []string{"copy 0 <- 4 16", "copy 0 <- 4 8"}),
		want:  `plan: step 9 (w): writes 8 bytes at 0 of slot 0 of 16 bytes`,
	},
	{
		name:  "written back over what is read",
		edits: slices.Concat(back, []string{"write-back wait 7 8", "write-back wait 8"}),
		want:  `plan: step 9 (w): overwrites slot 0 (w) without waiting for its reader, step 7`,
	},
	{
		name:  "written back while it is updated",
		edits: slices.Concat(back, []string{"write-back wait 7 8", "write-back wait 7"}),
		want:  `plan: step 9 (w): does not wait for step 8, which writes slot 4 (w)`,
	},
	{
		name:  "written back for another reason",
		edits: slices.Concat(back, []string{"write-back", "swap-out"}),
		want:  `plan: step 9 (w): writes over the variable of slot 0 (w)`,
	},
	{
		name:  "written back although no variable",
		edits: []string{"gradient", "write-back"},
		want:  `plan: step 6 (add): copies add as write-back`,
	},
	{
		name:  "written back inwards",
		edits: []string{"in #1 copy 4 <- 0+8 8 stage", "in #1 copy 4 <- 0+8 8 write-back"},
		want:  `plan: step 1 (w): copies w as write-back`,
	},
	{
		name: "a part is updated",
		edits: []string{
			"host #7 launch sgd <- 0 11", "compute0 #7 launch sgd <- 4 10",
			"slot 4 device+64 8 1-3 u8[8]", "slot 4 device+448 8 1-8 u8[8]",
			"device+0 8 5-6", "device+0 8 5-8",
			"device 400", "device 456",
		},
		want: `plan: step 8 (sgd): 16 bytes at 0 are outside slot 4 of 8 bytes`,
	},
	{
		name: "read after its update",
		edits: []string{
			"step 7 p2 host #9 launch norm 12 <- 0 wait 5 : norm\n", "",
			"step 8 p2 host #7 launch sgd <- 0 11 mutates 1 wait 6 : sgd",
			"step 7 p2 host #7 launch sgd <- 0 11 mutates 1 wait 6 : sgd\n" +
				"step 8 p2 host #9 launch norm 12 <- 0 : norm",
		},
		want: `plan: step 8 (norm): reads w after its update`,
	},
	{
		name: "never runs",
		edits: []string{
			"step 8 p2 host #7 launch sgd <- 0 11 mutates 1 wait 6 : sgd\n", "",
			"6-8", "6-7",
			"7-8", "7-7",
		},
		want: `plan: sgd: never runs`,
	},
	{
		name:  "reads too early",
		edits: append(flat, "wait 2 : mix", ": mix"),
		want:  `plan: step 3 (mix): does not wait for step 0, which writes slot 3 (x)`,
	},
	{
		name:  "updates too early",
		edits: append(flat, "wait 5 : norm", ": norm", "wait 6 : sgd", ": sgd"),
		want:  `plan: step 8 (sgd): overwrites slot 0 (w) without waiting for its reader, step 1`,
	},
	{
		name:  "overwrites what is not there yet",
		edits: append(flatMore, "stage wait 5 : k", "stage : k"),
		want:  `plan: step 9 (k): does not wait for step 4, which writes slot 6 (mix)`,
	},
	{
		name:  "overwrites what is read",
		edits: append(flatMore, "stage wait 5 : k", "stage wait 4 : k"),
		want:  `plan: step 9 (k): overwrites slot 6 (mix) without waiting for its reader, step 5`,
	},
}
