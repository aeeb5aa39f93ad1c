# DOCUMENT URL TOKEN: in a folder with the packages and program.ts.
node -e '
  const document = JSON.parse(require("fs").readFileSync(process.argv[1]));
  for (const method of document.methods) method.name = method.name.replaceAll(".", "_");
  require("fs").writeFileSync("openrpc.json", JSON.stringify(document));
' "$1"
node_modules/.bin/open-rpc-generator generate -t client -l typescript -n hero -d openrpc.json -o . > generator.log
mv client/typescript/src/index.ts hero.ts
node_modules/.bin/tsc --strict --skipLibCheck --esModuleInterop --target es2020 --module commonjs --outDir built program.ts
node built/program.js "$2" "$3"
