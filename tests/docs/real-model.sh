# In place of a download: a small model in the same format, untrained, with a byte tokenizer.
echo '{"prompt": "1+1=", "answer": "2"}' > standin.jsonl
temper init standin.yaml --task standin.jsonl > /dev/null
temper run standin.yaml --plain --set run_dir=runs/standin --set steps=1 --set task.held_out=0 --set evaluation.every=0 \
  --set pretrain.max_steps=0 --set model.context=128 --set sampling.max_new_tokens=4 > standin.log 2>&1 || cat standin.log
temper export runs/standin model
