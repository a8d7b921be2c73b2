# bash completion for csw-sample: options, their values, events of this machine. Needs no other package.
#
# Words are taken from the line itself, as bash splits them at = and : too; what bash has split off is cut from the front
# of the replies again.

# What fits the beginning $3 of the words in $2, each with $1 before it.
_csw_sample_add() {
	local word
	for word in $2; do
		[[ $word == "$3"* ]] && COMPREPLY+=("$1$word")
	done
}

# Asking for all events takes a while: the first two characters narrow it down. Until then the usual ones.
_csw_sample_events() {
	local before='' last=$3 names="page-faults task-clock context-switches cpu-migrations minor-faults major-faults
		cpu-clock cycles instructions branches branch-misses LLC_MISSES LLC_REFERENCES"
	if [[ $last == *,* ]]; then
		before=${last%,*},
		last=${last##*,}
	fi
	if ((${#last} >= 2)); then
		names=$("$1" list events "$last" 2>/dev/null | awk '/^  yes  / { print $2 }')
	fi
	_csw_sample_add "$2$before" "$names" "$last"
}

# $1: the command, $2: the option, $3: what stands before the value in the same word, $4: the value so far
_csw_sample_value() {
	local pids
	case $2 in
	-e | --event) _csw_sample_events "$1" "$3" "$4" ;;
	--by) _csw_sample_add "$3" "thread process comm cgroup cpu" "$4" ;;
	--format) _csw_sample_add "$3" "table json csv" "$4" ;;
	--driver) _csw_sample_add "$3" "auto perf sim sim:" "$4" ;;
	--trigger)
		_csw_sample_add "$3" "auto switch seg_load ldt_load desc_load mem_load: mem_store: pid_change tid_change
			tlb_flush" "$4"
		;;
	--mixed) _csw_sample_add "$3" "row last split" "$4" ;;
	--sav) _csw_sample_add "$3" "auto" "$4" ;;
	--sort)
		_csw_sample_add "$3" "oncpu slices voluntary preempted migrations pid tid comm cgroup cpu page-faults
			task-clock" "$4"
		;;
	-p | --pid)
		pids=$(cd /proc && echo [0-9]*)
		_csw_sample_add "$3" "$pids" "$4"
		;;
	--cgroup) _csw_sample_files "$3" "$4" -d ;;
	-i | --input | -o | --output) _csw_sample_files "$3" "$4" -f ;;
	*) return 1 ;; # a number, or no option with a value
	esac
}

_csw_sample_files() {
	local file
	while IFS= read -r file; do
		COMPREPLY+=("$1$file")
	done < <(compgen "$3" -- "$2")
	compopt -o filenames 2>/dev/null
}

_csw_sample_options="--event= --trigger= --sav= --force --driver= --multiplex --mixed= --ring-kib= --pid= --tid= --cgroup= --cpus= --duration= --delay=
	--interval= --input= --time= --comm= --header --by= --sort= --top= --rate --histogram --format= --output= --raw --no-color --quiet --verbose --overhead
	--help --version"

# The options whose value may stand in the next word.
_csw_sample_takes_value() {
	case $1 in
	-[eptCdIoi]) return 0 ;;
	--*) [[ $_csw_sample_options == *"$1= "* || $_csw_sample_options == *"$1="$'\n'* ]] ;;
	*) return 1 ;;
	esac
}

# The program behind --, then its arguments: commands, then files.
_csw_sample_program() {
	local word
	while IFS= read -r word; do
		COMPREPLY+=("$word")
	done < <(compgen "$([[ $2 == -- ]] && echo -c || echo -f)" -- "$1")
	compopt -o filenames 2>/dev/null
}

_csw_sample() {
	local command=${1:-csw-sample} line=${COMP_LINE:0:COMP_POINT} cur prev='' i cut
	local -a words
	cur=${line##*[[:space:]]}
	read -ra words <<<"${line%"$cur"}"
	((${#words[@]} > 0)) && prev=${words[${#words[@]} - 1]}
	COMPREPLY=()

	for ((i = 1; i < ${#words[@]}; i++)); do
		if [[ ${words[i]} == -- ]]; then
			_csw_sample_program "$cur" "$prev"
			return
		fi
	done
	case ${words[1]-} in
	list)
		((${#words[@]} == 2)) && _csw_sample_add "" "triggers events drivers" "$cur"
		[[ $cur == -* ]] && _csw_sample_add "" "--json --help" "$cur"
		return
		;;
	doctor | verify)
		_csw_sample_add "" "--json --help" "$cur"
		return
		;;
	help)
		((${#words[@]} == 2)) && _csw_sample_add "" "list doctor verify calibrate report slices" "$cur"
		return
		;;
	esac

	if [[ $cur == --*=* ]]; then
		_csw_sample_value "$command" "${cur%%=*}" "${cur%%=*}=" "${cur#*=}"
	elif ((${#words[@]} > 1)) && _csw_sample_takes_value "$prev"; then
		_csw_sample_value "$command" "$prev" "" "$cur"
	elif [[ $cur == -* ]]; then
		_csw_sample_add "" "$_csw_sample_options --" "$cur"
	elif [[ ${words[1]-} == report || ${words[1]-} == slices ]]; then
		_csw_sample_files "" "$cur" -f
	elif ((${#words[@]} == 1)); then
		_csw_sample_add "" "list doctor verify calibrate report slices help" "$cur"
	fi

	[[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=:] ]] && compopt -o nospace 2>/dev/null
	# What stands before the last = or : is a word of its own to bash, and is there already.
	cut=$cur
	[[ $COMP_WORDBREAKS == *=* ]] && cut=${cut##*=}
	[[ $COMP_WORDBREAKS == *:* ]] && cut=${cut##*:}
	cut=${cur%"$cut"}
	for i in "${!COMPREPLY[@]}"; do
		COMPREPLY[i]=${COMPREPLY[i]#"$cut"}
	done
}

complete -F _csw_sample csw-sample
