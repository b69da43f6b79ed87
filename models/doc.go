// Package models builds graphs of well-known neural networks, with their
// gradients, updates and learning rates. A model is a graph and nothing else: it
// is built in milliseconds whatever its size, and takes none of the memory that
// training it would. What networks are made of is package nn's.
//
// Five are those of J. Wei's thesis (2019, table 6.1), each as its source has it, to the
// last parameter: [Transformer] and [MoE], [ResNet], [WGAN] and [DeepSpeech]; two
// more, [GPT] and [LSTMLM], are language models, and [Topic] is a dictionary of topics.
// Every one has three sizes: base, as
// published; s64, its replica at a 64th of the memory with the same graph, an eighth as
// wide; and s512, for tests.
// A model's Fine form composes norms, dropout and optimizers of arithmetic, for
// graphs of TensorFlow 1's granularity.
//
// # The Transformer with mixture-of-experts layers
//
// [MoE] is the Transformer with mixture-of-experts layers of Tensor2Tensor
// (mtf_transformer with research/moe.py, on Mesh-TensorFlow). An encoder and a
// decoder are stacks of layers x + dropout(f(norm(x))): attention to the text
// itself, in the decoder also to the encoder's output, and, in place of the
// feed-forward sublayer, a choice of two out of many small ones, the experts.
// Almost all parameters are the experts'. A token costs two of them however
// many there are, which makes the model large rather than slow, and its memory
// the problem.
//
// Two ways to bring tokens to experts compute the same mixture. The dense one
// multiplies with 0/1 matrices and gives every expert a fixed number of slots;
// tokens beyond it are passed over. The sparse one gathers rows, drops none, and
// needs no such matrices. Experts' weights are a variable each, so that they can
// be brought to a device one at a time, or one variable a layer.
//
// Choices that are the source's: norms scale by the root mean square and have no
// bias; embeddings are shared by source, target and logits; the noise of dropout
// is the same at all positions of a text; the logits are jittered in training;
// experts' balance is an auxiliary loss; a second expert with little weight is
// left out at random, in evaluation too; Adafactor without momentum, factored
// for large matrices.
//
// Choices that differ from it. The loss is the mean over tokens that are not
// padding, rather than over all positions, so that texts of any length count
// alike; Adafactor does not notice the factor. The packed attention weights are
// [4 width heads·size], so that a projection is one matrix product. Every norm's
// scale is a variable of its own. Groups of tokens that share experts' capacity
// have a size that divides the batch. The smaller sizes warm up in tens of steps
// rather than ten thousand, and there is no final linear decay unless asked for.
//
// # Decoder-only language models
//
// [GPT] is the one model here that continues texts: every token is predicted from those
// before it. Its blocks are GPT-2's (layer norms before sublayers, learned positions,
// GELU by a hyperbolic tangent, biases everywhere, the embedding as the last layer), or
// LLaMA's (root-mean-square norms, rotary positions, SwiGLU, no biases, and fewer heads
// of keys than of queries). Parameters have the names and the shapes of public
// checkpoints, so that these are read without a change: matrices of GPT-2 are [in out],
// those of LLaMA [out in]. Both are trained by AdamW with clipped gradients and half a
// cosine of the learning rate, as is usual today, rather than as either was published.
//
// [DecodeGPT] builds what predicts: steps of 64, 16, 4 and 1 tokens, whose keys and values
// stay in state variables, f32[batch heads length size]. A step attends to what is there of
// the length: shapes do not change as a text grows, so one plan does for all of it.
// A table of more than 32 MiB is looked up and multiplied in parts that are views, so
// that a device may be smaller than the vocabulary's embedding, and layers stream
// through it one after the other.
//
// [ParsePublished] reads the config.json of a public checkpoint, and [GPTConfig.Role]
// tells its tensors apart. LLaMA's blocks are those of several families: LLaMA, Mistral, Qwen 2
// and Qwen 3, with biases, norms of heads, heads of another width, windows, and rotary positions
// that are scaled for longer texts ([RotaryScaling]) as their files say; and Mixtral and Qwen 3's
// mixtures, with experts in place of feed-forward sublayers, k of them for each token, whose
// matrices are a variable each. What would make another network is refused by its name, what is
// known to change nothing is passed over, and of the rest the reader is told. So are refused, among
// others, rotary positions that turn a part of a head, windows in layers here and there, layers
// without experts among others, experts that all tokens share, and quantized weights. Weights of
// 16 bits are converted when they are read.
//
// # The others
//
// [Transformer] is transformer_base of Tensor2Tensor: norms before sublayers,
// sinusoid positions, one embedding for all. [ResNet] is that of TensorFlow's
// official models, versions 1.5 and 2, as deep as [ResNetBlocks] says or as one
// likes. [WGAN] is the pair of 101-layer networks of Gulrajani et al. (2017), or
// their default pair of wide blocks; it has two objectives, which take turns, and
// the critic's penalty is the gradient of a gradient. [DeepSpeech] is Mozilla's,
// with one direction; its LSTM is one operation or unrolled in time. What each
// leaves out of its source, or adds to learn faster as a replica, its function
// says. [LSTMLM] is the largest by far: its matrices are those of Orpheus' third
// application, 53.6 GiB of them, within the 12 GiB of a device and the 64 GiB of a host.
// [Topic] is its second one. In each step it solves a small problem for every document, whose
// iterations are part of the graph.
package models
