package command

import (
	"strings"

	"github.com/alecthomas/kong"
)

// flagTexts are what --help says of each flag: its name, after that of the
// command where flags of several commands share it, and below it the text.
const flagTexts = `
--log-level
    Least severe log entry to write to standard error: debug, info, warn or error (default
    ${default}). At info, workers log what befalls their job: views, leases that are lost,
    elections, stalls and evictions, each with the job, the rank, the epoch and the clock.
--log-format
    How entries of the log are written: text or json (default ${default}).
--pprof
    Write a profile of gomem itself for 'go tool pprof' or 'go tool trace': cpu, mem,
    trace, block, mutex, or goroutine, those that there are at the end.
--pprof-dir
    Directory of the profile (default: the current one).
--model
    moe, a Transformer with mixture-of-experts layers; transformer; gpt, a language model
    that continues texts; lstm-lm, a recurrent one; resnet; wgan, a pair of adversarial
    networks with gradient penalty; deepspeech; topic, a dictionary of topics for
    bags of words; or onnx:FILE, the network of a file (default ${default}). train also has mlr,
    logistic regression, lr, the same of two classes with sparse rows, as of clicks, mf,
    matrix factorisation, lda, topics of documents, and lasso and l1-lr, regression with few
    coefficients, by squares and of two classes, and gbt, gradient-boosted trees, without
    layers and plans.
--size
    s512 (tiny), s64 (1/64 of base in memory) or base, which is the published model
    (default ${default}).
--batch
    Pairs of texts, texts, images, utterances or documents a step (default: the size's). onnx:
    the size of axis 0 of inputs that have none in the file.
--fine
    Compose norms, dropout and optimizers of arithmetic, for graphs of TensorFlow 1's
    granularity.
--length
    moe, transformer: tokens a text, longer ones are cut; gpt, lstm-lm: tokens a window of
    text; deepspeech: frames an utterance, longer ones are left out (default: the size's).
--experts
    moe: experts a layer (default: the size's).
--expert-hidden
    moe: hidden units of an expert (default: the size's).
--moe
    moe: how tokens reach experts: dense, by matrix products, or sparse, by gather and
    scatter (default dense).
--stacked
    moe: keep the weights of a layer's experts in one variable instead of one an expert.
--depth
    resnet: layers, 50, 101, 152, 1001, 1916 and others; moe, transformer: layers of the
    encoder, and of the decoder; gpt, lstm-lm: layers (default: the size's).
--blocks
    resnet: blocks of each of the four stages, instead of a depth. gpt: gpt2, as GPT-2 has
    them, or llama: RMS norm, rotary positions, SwiGLU, grouped queries (default gpt2).
--network
    gpt: the network of a public checkpoint, its directory or its config.json, instead of one
    of a size: of GPT-2, LLaMA, Mistral, Mixtral, Qwen 2 or 3. plan needs no more than that; with
    --init and the same directory train goes on from its weights.
--version
    resnet: v1.5, norms after convolutions, or v2, before (default v1.5).
--pixels
    resnet, wgan: pixels of a side of an image (default: the size's).
--vocabulary
    moe, transformer, gpt, lstm-lm: sub-words, at most (default: the size's); train learns
    them, and its model has as many as were learnt. topic: words (default: the data's).
--topics
    topic: how many (default: the size's). lda: how many (default 20).
--alpha
    lda: how much is added to the tokens that a document has of each topic (default 0.1).
--beta
    lda: how much is added to the tokens that each word has of a topic (default 0.01).
--mh-steps
    lda: so often a sweep, another topic is proposed to a token by its word and by its document
    (default 2).
--classes
    resnet: kinds of images, the background included (default: the data's, or the size's
    for a command that reads none).
--dropout
    moe, transformer, gpt, lstm-lm, deepspeech: share of units that are left out in
    training, from 0, below 1 (default: the size's).
--optimizer
    sgd, momentum, adam, adamw, these two with -bf16 or -8bit for small states, lion, muon
    or adafactor, with its own learning rate unless --lr is given (default: the model's).
--clip
    Scale the gradients of an update down so that their norm is no more (default: the
    model's, which is mostly none).
--accumulate
    all but wgan: batches a step, whose gradients one update averages, over all their
    tokens, images or utterances (default 1).
--freeze
    Parameters that are not trained, or scopes of them: h/0,wte. Checkpoints of a run by
    --init of a public one leave them out, and are read together with that.
--lora
    gpt: train two small matrices beside linear layers' own, and nothing else:
    rank=16,alpha=32,dropout=0.05,targets=q_proj+v_proj (default: rank, 0, all).
--nets
    wgan: resnet, 101 layers each, or good, the default of the original (default resnet).
--rnn
    deepspeech: the LSTM as one operation, fused, an operation for each part of each step,
    unrolled, or one for the loop over steps, scanned (default fused).
--data
    What to learn from. Pairs of texts: go:doc (doc comment to declaration, from the local
    Go source tree; the default), tsv:FILE (source TAB target), mo:DIR (gettext
    catalogues) or text:FILE (each line to the next). Running text, for gpt and lstm-lm: go:doc or
    text:PATH (a file, or the text files of a folder); for gpt jsonl:FILE, a line {"text": …} or
    {"prompt": …, "completion": …}. Images: glyphs (drawn characters; the default), dir:PATH (a
    folder a class), cifar10:DIR or icons:DIR (an icon theme). Speech: formant (the documentation,
    synthesised; the default), csv:FILE (wav_filename,wav_filesize,transcript) or espeak:FILE
    (a sentence a line). Documents: drawn (of known topics; the default) or uci:FILE (UCI's bags of
    words). mlr, lr, lasso, l1-lr and gbt: libsvm:FILE; mf: mtx:FILE, or ml:DIR, a MovieLens set;
    lda: text:FILE (a document a line), uci:FILE or uci:DIR (default: drawn). onnx: npz:FILE,
    NumPy's archive, npz:DIR, of .npy files, or tensors:FILE, of safetensors, with an array for
    each input, and one for the target, whose axis 0 counts examples.
--seed
    Selects initial weights, order of pairs and dropout (default ${default}).
--config
    Take flags from a file, in YAML or JSON, by their names without the hyphens in front, as
    in steps: 300. Those on the command line win. A run that is saved keeps its own in
    DIR/config.yaml.
train --steps
    Steps to train in all, those of a resumed run included (default 300).
--epochs
    Passes over the data, instead of steps. Workers share them out, and the learning rate
    goes by the data: a step of four workers is four.
--eval-every
    Steps between evaluations on held-out data (default ${default}); there is one at the
    end, too.
--eval-batches
    Batches of held-out data an evaluation (default 8).
--eval-data
    Data to evaluate on, all of it, instead of what is held out of --data; specs as there.
--eval-share
    Share of the data that is held out for evaluation, above 0, below 1; a larger one
    holds out what a smaller one does, and more (default 0.02; of glyphs 1,000 images).
    CIFAR-10 has a test set instead.
--strict
    resnet, wgan: refuse pictures that cannot be read, instead of leaving them out.
--bleu
    moe, transformer: batches of held-out texts to translate at the end, token by token,
    and score by BLEU; 0 is none (default 2, none at base).
--samples
    wgan: draw images into a directory at every evaluation, as a grid step-000100.png.
--tokenizer
    gpt: a tokenizer.json to use, such as that of a public checkpoint, instead of learning
    sub-words from the data.
--patience
    End the run when so many evaluations in a row are no better than the best, by the
    held-out loss (default: never). The best one's checkpoint is kept.
--keep-best
    Keep the checkpoint of the best evaluation, too, by the held-out loss: DIR/best, which
    predict, eval and --resume take like the directory for its latest.
--save
    Keep checkpoints in a directory: at the end, on Ctrl-C, and as --save-every says
    (default: where --resume found one, else none are kept).
--save-every
    Steps between checkpoints, or epochs with mlr, lr and mf (default: only at the end).
--mtbf
    How long a machine runs until it fails, on average, such as 720h: checkpoints are then
    made as often as costs the least time, by how long one takes, the first after 10 s.
--resume
    Continue from the newest checkpoint of a directory, or from a file, with the same
    results as if the run had never stopped, and save in the same place. Model, sizes, data,
    seed, learning rate and steps are the run's, and need not be given; if they are, they
    must be the same. More steps may be asked for, and the plan may differ.
--lr
    Learning rate at its peak (default: the model's; its schedule keeps its form).
--schedule
    Form of the learning rate over the run: constant; linear, to nothing; cosine, to a
    tenth; inverse-sqrt, of the step; or step, a tenth from the half and from three quarters
    on (default: the model's).
--warmup
    Steps in which the learning rate grows to its peak (default: the model's).
--init
    Begin a new run with the weights of a checkpoint, of another model or of another
    program: those whose names and shapes are this model's, with a report of what was
    taken, missing and left over. A directory stands for its newest checkpoint. A public
    checkpoint has to be of the network that the run trains: see --network.
--rename
    File of names for --init: on each line theirs, and after a space ours; a * in theirs
    stands for any characters, which go where ours has one. A line that applies to
    nothing is refused.
train --json
    Print JSON lines of type start, resume, init, warning, step, eval, save and, the last,
    summary. Sizes are bytes.
--trace
    Write a timeline of the first steps to a file, for ui.perfetto.dev.
train --profile
    Write a profile of the first steps to a directory at the end: text, JSON, figures, a
    timeline and a page. See gomem profile.
--local
    Start so many workers here, and train with them.
--sync
    How workers keep in step. Gradients are exchanged within each step: ring (all-reduce),
    ps (each worker serves a part), factors (inputs of layers and gradients of what they
    give, multiplied by all) or hybrid (of each gradient what is fewer bytes). Or what each
    worker's step has changed goes to the others between steps: bosen (stale-synchronous,
    rows served by all, what matters most goes first), pf (filtered updates are broadcast),
    easgd (averaged now and then), bsp, ssp, async, svb, average, exponential, halton, orpheus
    (to a few drawn anew each step), lossy (as orpheus, and the others never get it) or
    fabric (as async, updates are scheduled, added up on the way, and none is too late;
    default ring). Between steps all workers weigh the same; within one as much as their
    batches have tokens, images or utterances. Or, of mf, stratified: workers have blocks of
    rows and columns at the same time that have none in common, and hand parts of the smaller
    matrix on, each to one other; the result is that of a serial order. Of lda, rotate: words
    go round (the default of lda; with bosen and the like all share them). Of lasso and l1-lr,
    which coefficients are updated together: blocks, of what is correlated each after the
    other by one worker, and all blocks at the same time (their default); independent, of
    what is correlated one alone; unchecked, whatever is drawn, which may not converge. Of gbt,
    histograms: each counts a part of the data, and any number come to the same trees.
--lambda
    lasso, l1-lr: the penalty, lambda in (|y - Xb|^2 + lambda |b|)/2, and in the cross entropy
    of all samples + lambda |b| (default: a tenth, of l1-lr a thousandth, of what makes all
    coefficients 0). mf: of each element lambda (|w|^2 + |h|^2)/2, of its row and its column
    (default 0.01). gbt: of each leaf lambda v^2/2 of its value (default 1).
--gap
    lasso, l1-lr: stop when the objective is this near to the least one, as a part of the
    objective of coefficients that are 0 (default 1e-6).
--parts
    lda: into how many parts documents and words are divided, at least one a worker; but for
    --sync rotate, those of a worker, between which it hears of others (default 4).
--block-tokens
    lda: words of documents that each part samples before the next; the result depends on it. With
    --host-memory or --disk, two such blocks of each part are in memory (default 1048576).
--factors
    mf: numbers of each row and column, the rank (default 10).
--staleness
    bosen, pf, ssp and the like: by how many steps a worker may be ahead of the slowest
    (default: the scheme's).
--bandwidth
    bosen, async: send updates early within a rate, such as 200Mbps.
--order
    bosen, async with --bandwidth: what is sent early first: relmag, what has changed most
    beside its value; absmag, what has changed most; round-robin or random (default relmag).
--rule
    bosen, bsp, ssp, async, fabric: what those who serve do with an update: add it,
    momentum:MU; for mlr and mf, which send gradients then, also adam, adam:STEP,
    adarevision:STEP, AdaGrad that knows what was under way, or adadelay:C:L, whose steps are
    the smaller the later a gradient comes (default add). mlr also has bfgs and dfp, by which
    all workers make the same quasi-Newton steps: an epoch is one evaluation of all samples.
--delay
    fabric: how many other updates may be folded in while one is computed and on its way;
    with more it is discarded, and counted (default 30).
--aggregators
    fabric: workers that add updates up on their way to one that serves (default 4).
--replicas
    fabric: workers that keep what another one serves, for when that is lost (default 0).
--divergence
    fabric: how many updates a replica may lack; norm:X: the sum of their norms (default 100).
--filter
    Between steps: send a part of an update and keep the rest for later: dvf:DELTA (what is
    larger; dvf:DELTA:SLOW:MBPS has a bound of its own for ways on which updates arrive with
    less than so many Mbit/s), topk:SHARE, powersgd:RANK, fp16 (rounded), or several with
    commas.
--average
    easgd, average: steps between averages (default 10); orpheus, lossy: likewise (100).
--multicast
    orpheus, lossy: workers that a step's updates go to, drawn anew each step (default 4).
--receivers
    orpheus, lossy: which these are: random, drawn anew at each step; turns, one after the
    other; or, of lossy alone, fixed (default random).
--select
    orpheus, lossy: pairs of factors that are sent of each weight, those that say most
    (default 25).
--rotate-every
    mlr: clocks, ten of an epoch, after which a worker learns from the samples of the one
    behind it (default: never).
--topology
    pf: a file that says where workers are, for the trees that sums come back along: a line
    for each, or for several in a row, with the switches above it, the outermost first, as in
    '0-3 hall1/rack1'. Sending within a rack costs 0.1, within a hall 0.5, and else 1.
--svlog
    orpheus, lossy, svb, exponential, halton: log what each worker folds into its variables to a
    directory, beside the steps. Of that, gomem-cluster restore makes the checkpoint of any
    step that is in the log.
--svlog-keep
    How many times all variables are kept in the log, each with the steps that followed;
    what is older is removed (default 1).
--metrics
    Write the run's numbers to a directory: metrics.csv, a row a step with loss, metrics,
    those of evaluations, learning rate, seconds and peaks, and the same as event files that
    TensorBoard reads; a resumed run goes on with them. gomem-cluster, given an address
    instead or as well: serve counters for Prometheus at it, such as :9090, which is one of
    this machine alone, or 0.0.0.0:9090. Of --local, the first worker does.
--workers
    Processes of the job, if their launcher does not say (torchrun, srun, mpirun and
    Kubernetes do).
--rank
    Number of this process, from 0, if the launcher does not say.
--min
    Begin once so many workers are there, and go on while so many are left: who is lost, or
    is to end, goes, and the others go on from the same step (default: all).
--max
    Take part with so many workers at most (default: all).
--restarts
    With --local, start workers that end with an error again, so often in all (default:
    never): with --min the one, which joins the others, and without it all, which begin
    again from the latest checkpoint in --save.
--master
    Where process 0 is, if the launcher does not say.
--job
    Name of the job, if the launcher gives none; two jobs that share an etcd need two.
--etcd
    1: process 0 has etcd in it, and its end is the end of all; 3: processes 0 to 2 have, any
    one of which may be lost with --min; or URLs of an etcd that is there, with commas
    (default 1).
--lease
    How long a worker may be silent before it is out: whole seconds, from 2s to 10m (default
    5s). A short one notices sooner who is lost, and takes a busy one for lost.
--tls
    auto: certificates of the job's own, by the token in --token-file; or off (default
    auto, and off for --local).
--token-file
    File with the job's token: process 0 writes it, the others read it (default:
    $GOMEM_TOKEN_FILE).
--insecure
    Take --tls off between machines: whoever can connect can take part.
--policy
    auto: the fastest plan found within the budgets, in which every value is kept, swapped
    or computed again; thesis: partitioned execution, variables on the host, swapping;
    vanilla: everything on the device, the baseline; or grappler: vanilla with the
    swapping of TensorFlow 1's memory optimizer, to compare (default: ${policy}; thesis
    where --partition, --strategy or --lookahead is given).
--strategy
    How operations are gathered into partitions: dfs, depth or dfs-depth (default dfs).
--partition
    Operations a partition (default 20). Smaller needs less device memory, larger copies
    less.
--lookahead
    A value that the next K partitions do not need leaves the device; under --policy auto,
    at least (default 2).
--streams
    Compute streams, 1 to 8 (default 1).
--plan-time
    Look for fast plans for so long, such as 30s, from the first that fits on, which is there
    in about half a second for 8,000 nodes, even if that is longer (default: about a second's
    worth of search, whatever the machine; with a time, plans depend on it).
--fuse
    Run elementwise operations together with what they follow, for fewer launches and the
    same results (default ${default}).
--mesh
    Divide the graph over slices that run one after the other, so that each can be staged
    and swapped alone: axes with the number of their slices, such as batch:4 or
    batch:2,experts:2. Results are the same up to rounding.
    Axes may be of processes with slices each, such as experts:4x5: plan and fit then plan
    what each of them does, and gomem-cluster train has as many of them train together. What
    one mesh saves, another goes on from, or none.
--layout
    What is divided along which axis of the mesh, such as batch=batch (default: each axis of
    the mesh divides what has its name). On the left is an axis of inputs and variables by
    its name, or by their names and its number: */ff/w0:1.
--precision
    f32; bf16, in which activations, gradients and copies of weights are bfloat16, half as
    large, and variables, sums and losses stay f32; or tf32, in which a GPU rounds what it
    multiplies as matrices to 10 bits behind the point, and is faster (default f32).
--device-memory
    Budget of device memory, such as 192MiB (default: the model size's; none under
    vanilla). A budget that is too small is refused with the smallest that works.
--host-memory
    Budget of host memory for the whole process, or each of its devices; on cpu theirs is beside
    it (default: the model size's, none under vanilla). Of lda, documents are in files then.
--disk-memory
    Budget of a disk behind the host, such as 20GiB: what the host has no room for goes
    there, and comes back in time (default: none).
--disk
    Directory on the disk, for a file that nobody else sees and that is gone at the end. Of lda,
    for documents (default, with --host-memory: the system's for temporary files).
--device
    cpu; null, which computes nothing and checks the accounting; sim:PROFILE or sim:FILE.json,
    the same on a virtual clock; cuda or cuda:N, an NVIDIA GPU, of whose budget products take
    32 MiB a stream; to train and plan cuda:0,1, or without GPUs cpu,cpu: a worker for each,
    in one process. To workers cuda deals out the GPUs of their machine (default: the first
    GPU that can be used, else cpu; resumed, the run's kind; of several workers, cpu).
devices --profile
    Print what a device is priced by as JSON, which --device sim:FILE.json reads.
--threads
    Threads of an operation, 1 to 1024 (default: one a processor).
--copy-gbps
    Slow each copy engine down to so many gigabytes (1e9 bytes) a second.
--no-cuda-graphs
    On a GPU, launch every operation by itself, not what lies between two waits as a CUDA graph,
    which takes memory of the GPU that no budget counts. Results are the same.
--interpret-chains
    On a GPU, compile no kernels for chains of elementwise operations. Results are the same.
--dump
    Write the plan of a training step to a file, as text: every slot, every step.
--dump-pass
    Write what the passes have decided about a training step to a file, as text: the
    order, where each operation runs, what is away when, every stay and event, and what became
    of every candidate for the plan.
plan --steps
    List the steps of the plan instead of the explanation: all, or those that meet
    conditions such as value=enc/0/*,part=3-5,op=matmul* or step=100-200,time=1.5-3. A step
    is of a value that it makes, reads, copies or scribbles on; op is an operation or the
    reason of a copy; time is when it is done, in milliseconds by prices; * stands for any
    characters.
--sharding
    Print how --mesh divides every value of the graph, and what is sliced, joined and added
    up for it, instead of the explanation.
--graph
    Write the graph that runs to a file: FILE.dot for Graphviz, FILE.txt for text.
plan --json
    Print one JSON object instead of the explanation. Sizes are bytes.
fit --max
    What to find the largest of: batch; depth (moe, transformer, gpt, lstm-lm, resnet);
    experts (moe); or length (moe, transformer, gpt, lstm-lm, deepspeech) (default
    ${default}).
fit --device-memory
    Budget of device memory, such as 192MiB (default: the model size's).
fit --host-memory
    Budget of host memory for the whole process, such as 1GiB (default: the model size's).
fit --device
    Where a step of the answer is run: cpu; null, which only checks the accounting; or
    sim:NAME, a machine to plan for as well (default: the first GPU that can be used; else
    cpu where this machine has the memory and a step takes seconds, else null).
fit --json
    Print one JSON object of type fit. Sizes are bytes.
restore --from
    Directory that --svlog of a run named.
restore --at
    Step after which the checkpoint is (default: the latest).
restore --save
    Directory to write the checkpoint to, which has none of another run.
restore --json
    Print one JSON object of type restore.
doctor --json
    Print one JSON object of type doctor.
explain-loop --loop
    mf, lda, lr, gbt, stencil or skewed; or a file (default ${default}).
explain-loop --workers
    Workers that run it, from 1 to 256 (default ${default}).
explain-loop --space
    Index that divides the loop among workers (default: one that is sound, with the fewest
    elements to send).
explain-loop --time
    Index that workers step through, a part at a time (default: as for --space).
explain-loop --ordered
    Keep the order of iterations that depend on each other.
explain-loop --nonzeros
    Draw N iterations, more at small indices, and divide those by their number (default: all
    iterations, divided evenly).
explain-loop --check
    Run a pass over the loop here, on numbers that are drawn: by workers, with each use of an
    array held to what the loop declares, and in serial order; and compare the bits.
explain-loop --json
    Print one JSON object of type loop.
diff --json
    Print one JSON object of type diff. Sizes are bytes.
--steps-to-run
    Steps to run and time after a warm-up; 0 runs nothing (default ${default}).
profile --device
    cpu; cuda or cuda:N; or null, which runs nothing; or a machine that is not there, whose
    times are predicted: sim:NAME, as for gomem plan (default: the first GPU that can be
    used, else cpu).
profile --json
    Print one JSON object instead of the text. Sizes are bytes, times milliseconds.
--png
    Draw memory and streams over time to a file.
--svg
    Draw the same as SVG.
profile --trace
    Write a timeline to a file, for ui.perfetto.dev: streams, memories, and arrows from
    copies to what waits for them.
--html
    Write a page to look around in to a file: memory, streams and every step. It needs no
    network.
--sweep
    Plan within budgets from the smallest that works to vanilla's peak, and print what each
    costs; with --json, one JSON object of type sweep.
--points
    Budgets of --sweep, from 2 to 1,000 (default 16).
--plot
    Draw the curve of --sweep into a file: FILE.png or FILE.svg.
--advise
    Say whether the model fits, and if not what would do: policies, partitions, slices,
    precision, batches, a disk and larger budgets are planned, within two minutes, and those
    that fit are ranked, with what each needs and costs, and whether it changes results; with
    --json, one JSON object of type advice.
`

// describe gives every flag without a text of its own the one in flagTexts.
func describe(k *kong.Kong) error {
	texts := parseTexts(strings.ReplaceAll(flagTexts+predictTexts+planTexts+benchTexts+treeTexts+
		networkTexts, "${policy}", string(byDefault)))
	return kong.Visit(k.Model.Node, func(v kong.Visitable, next kong.Next) error {
		if n, ok := v.(*kong.Node); ok {
			for _, f := range n.Flags {
				if text, ok := texts[n.Name+" --"+f.Name]; ok {
					f.Help = text
				} else if f.Help == "" {
					f.Help = texts["--"+f.Name]
				}
			}
		}
		return next(nil)
	})
}
