package command

// predictTexts are what --help says of the flags of predict and eval, as in flagTexts.
const predictTexts = `
--from
    Checkpoint: the directory that train saved to, for its latest, or a file of it. It
    knows its model, size, options, tokenizer and classes. Or a public checkpoint of
    GPT-2, LLaMA, Mistral, Mixtral, Qwen 2 or 3: a directory with config.json, tokenizer.json and
    weights in safetensors. Or, of predict, the file of a network, FILE.onnx.
predict --batch
    Inputs that are answered together, at most: more are faster, and take more memory
    (default ${default}).
--beam
    moe, transformer: go on with the best N translations instead of the best one;
    deepspeech: with the likeliest N beginnings (default: greedy).
--length-penalty
    Scores of translations are divided by ((5+n)/6)^A for n tokens: a larger A makes them
    longer (default 0.6).
--top
    resnet: classes of a picture to show (default 5); lda: topics of a line (default 3);
    mlr: classes of a sample, with their probabilities; mf: lines are rows, and the columns
    that have most of each are shown.
predict --samples
    wgan: images to draw (default 16).
--out
    wgan: where they go: a file NAME.png for all, in a grid, or a directory for a file
    each (default samples.png). onnx: an .npz file of the outputs, by their names.
export --onnx
    File to write the network of a run of --model onnx:FILE to, with the run's weights.
export --gguf
    File to write as llama.cpp reads it: network, weights and tokenizer.
export --store
    With --gguf: the format of matrices, f16, bf16, q8_0, q6_k, q4_k or q4_0 (default: f32).
export --adapter
    Directory to write what --lora has trained to, by itself.
predict --adapter
    Of a public checkpoint: a directory with adapters of PEFT, as export --adapter writes
    them. May be given several times: then each in turn answers every input.
eval --adapter
    Of a public checkpoint: a directory with adapters of PEFT.
--store
    Of LLaMA's kind of networks: hold matrices that are not trained in few bits: bf16, f16,
    q8_0, q6_k, q4_k, q4_0 or nf4 (default: f32). Results differ by what that rounds. predict
    and eval: of a public checkpoint, or f32 (default of a GGUF file: as each matrix is in
    it); train: with --lora. train without --lora: bf16, and matrices are trained so, by
    --optimizer adamw-8bit or another with small states.
predict --length
    Of a public checkpoint: the tokens that are read at a time, at most (default 2,048, or as
    many as the model has positions for, if those are fewer).
eval --length
    Of a public checkpoint: the tokens that are read at a time, at most (default 2,048, or as
    many as the model has positions for, if those are fewer).
predict --tokens
    moe, transformer: tokens of a translation, at most; gpt: tokens to write (default: as
    many as there is room for).
--temperature
    gpt: draw tokens by their probability, flatter above 1 and sharper below; very large, and
    all are as likely (default 0: the likeliest, always).
--top-k
    gpt: draw among the K likeliest tokens.
--top-p
    gpt: draw among the fewest tokens that together have the share P.
predict --seed
    wgan: selects the noise (default: the training's, so that samples are those that it
    showed); gpt: selects what is drawn (default 0).
predict --json
    Print JSON lines of type prediction and error, one an input, and at the end summary, of
    models with layers. Sizes are bytes.
eval --data
    What to evaluate, as for train (default: what the model was trained on). A public
    checkpoint needs it, text:PATH or go:doc.
eval --eval-batches
    Batches to evaluate, at most (default 8 of what was held out in training, as there; all
    of other data).
eval --bleu
    moe, transformer: batches of texts to translate, and score by BLEU (default 2, none at
    base).
eval --json
    Print one JSON object of type eval. Sizes are bytes.
`
